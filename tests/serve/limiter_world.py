"""A provider with honest buckets and the callers who ask it, in simulated time.

The provider is written from what providers document, not from the limiter: its buckets start full
when the first request arrives, a refused request takes nothing, and requests arrive after delays
that differ from one to the next.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from serve.ask.contract import Class
from serve.ask.limiter import Lease, Limiter, Limits, Outcome

QUICKLY = 0.05
"""Seconds until a request that is turned away is known to be."""


class HonestBucket:
    """`per_minute` units flow in, up to `size`; starts full at first use."""

    def __init__(self, per_minute: float, size: float) -> None:
        self._rate = per_minute / 60
        self._size = size
        self._level = size
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` is there."""
        if self._at is not None:
            self._level = min(self._size, self._level + self._rate * (now - self._at))
        self._at = now
        missing = amount - self._level
        return missing / self._rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Only after `wait` said that it is there."""
        self._level -= amount


@dataclass
class Provider:
    """Answers an admitted request after `latency` seconds, each way of the wire takes `delay`.

    `concurrent`: more at once get a 503. `failing`: probability of one. `outage`: seconds from the
    start of the world.
    """

    rpm: float | None = None
    burst: float | None = None
    tpm: float | None = None
    concurrent: int = 10**9
    latency: tuple[float, float] = (1.0, 4.0)
    delay: tuple[float, float] = (0.01, 0.21)
    retry_after: bool = True
    failing: float = 0.0
    outage: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self.in_flight = 0
        self.requests = HonestBucket(self.rpm, self.burst or self.rpm) if self.rpm else None
        self.tokens = HonestBucket(self.tpm, self.tpm) if self.tpm else None

    def answer(self, tokens: int, now: float, rng: random.Random) -> tuple[Outcome, float]:
        """The outcome of a request that arrives now, and the seconds until it is known."""
        costs = ((self.requests, 1.0), (self.tokens, float(tokens)))
        wait = max(bucket.wait(cost, now) if bucket else 0.0 for bucket, cost in costs)
        if wait:
            return Outcome(
                "rate_limited", retry_after=math.ceil(wait) if self.retry_after else None
            ), QUICKLY
        out = self.outage[0] <= now < self.outage[1] or rng.random() < self.failing
        if out or self.in_flight >= self.concurrent:
            return Outcome("unavailable", status=503), QUICKLY
        for bucket, cost in costs:
            if bucket:
                bucket.take(cost)
        return Outcome("ok", tokens=tokens), rng.uniform(*self.latency)


@dataclass
class World:
    """Callers keep `waiting` tickets of each class in the queue.

    `size` gives the tokens a request really takes, of which `reserve` times as many are reserved.
    """

    limits: Limits
    provider: Provider
    seed: int = 0
    waiting: Mapping[Class, int] = field(default_factory=lambda: {"fast": 40})
    size: Callable[[random.Random], int] = lambda rng: 100
    reserve: float = 1.0

    def __post_init__(self) -> None:
        self.now = 0.0
        self.rng = random.Random(self.seed)
        self.limiter = Limiter(self.limits, self.now)
        self.granted: list[Lease] = []
        self.ended: list[tuple[float, Lease, Outcome]] = []
        self._ids = itertools.count()
        self._sizes: dict[str, int] = {}
        self._queued: Counter[Class] = Counter()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._timer = 0

    def run(self, seconds: float) -> None:
        """Let `seconds` pass."""
        until = self.now + seconds
        self._decide()
        while self._events and self._events[0][0] <= until:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        self.now = until

    def count(self, kind: str, since: float = 0.0) -> int:
        """Calls that ended so, from second `since` on."""
        return sum(outcome.kind == kind for at, _, outcome in self.ended if at >= since)

    def share_of_429s(self, since: float = 0.0) -> float:
        """Of the calls that ended from second `since` on."""
        return self.count("rate_limited", since) / sum(at >= since for at, _, _ in self.ended)

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._ids), happen))

    def _decide(self) -> None:
        while True:
            for cls, number in self.waiting.items():
                for _ in range(number - self._queued[cls]):
                    self._join(cls)
            decided = self.limiter.step(self.now)
            for lease in decided.granted:
                self._queued[lease.cls] -= 1
                self.granted.append(lease)
                self._at(self._delayed(), lambda lease=lease: self._arrive(lease))  # type: ignore[misc]
            if not decided.granted:
                break
        assert decided.wake_at > self.now
        self._timer = mark = self._timer + 1
        if decided.wake_at < math.inf:
            self._at(decided.wake_at, lambda: self._decide() if mark == self._timer else None)

    def _join(self, cls: Class) -> None:
        ticket_id = str(next(self._ids))
        self._sizes[ticket_id] = self.size(self.rng)
        self._queued[cls] += 1
        self.limiter.enqueue(ticket_id, cls, round(self._sizes[ticket_id] * self.reserve))

    def _delayed(self) -> float:
        return self.now + self.rng.uniform(*self.provider.delay)

    def _arrive(self, lease: Lease) -> None:
        outcome, seconds = self.provider.answer(self._sizes[lease.id], self.now, self.rng)
        admitted = outcome.kind == "ok"
        self.provider.in_flight += admitted
        self._at(self.now + seconds, lambda: self._end(lease, outcome, admitted))

    def _end(self, lease: Lease, outcome: Outcome, admitted: bool) -> None:
        self.provider.in_flight -= admitted
        self.ended.append((self.now, lease, outcome))
        self.limiter.settle(lease.id, outcome, self.now)
        self._decide()
