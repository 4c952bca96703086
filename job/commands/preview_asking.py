"""How long the asking will take: the packs in the order in which they will be sent, through the
limiter itself in simulated time. Pure.

Invariant: a permit is granted here exactly when the limiter would grant it to one who asks the same
calls, which take the same time and do not fail.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from serve.ask.contract import Class
from serve.ask.limiter import Lease, Limiter, Limits, Outcome

CLASSES: tuple[Class, ...] = ("fast", "slow", "retry")
"""Each has one ticket at a time, as the asking actor has."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call as it is foreseen. `reserved`: the tokens its permit is asked for; `tokens_in` and
    `tokens_out`: what it takes; `seconds`: from sending to the last byte; `model`: who is asked."""

    cls: Class
    reserved: int
    tokens_in: float
    tokens_out: float
    seconds: float
    model: str = ""


class Calls(Protocol):
    """What is to be asked, call by call."""

    def reserve(self, cls: Class) -> int | None:
        """The tokens that the next call of `cls` asks a permit for; None: there is none now."""
        ...

    def take(self, cls: Class) -> Call:
        """The call to send, now that its permit has come."""
        ...

    def ended(self, call: Call) -> None:
        """`call` was answered: what that teaches counts for those that follow."""
        ...


@dataclass(slots=True)
class Listed:
    """Calls that are known beforehand; their seconds are multiplied by `times`."""

    calls: Sequence[Call]
    times: float = 1.0
    _next: dict[Class, int] = field(default_factory=dict)

    def reserve(self, cls: Class) -> int | None:
        """See `Calls`."""
        at = self._next.get(cls, 0)
        while at < len(self.calls) and self.calls[at].cls != cls:
            at += 1
        self._next[cls] = at
        return self.calls[at].reserved if at < len(self.calls) else None

    def take(self, cls: Class) -> Call:
        """See `Calls`."""
        call = self.calls[self._next[cls]]
        self._next[cls] += 1
        return replace(call, seconds=call.seconds * self.times)

    def ended(self, call: Call) -> None:
        """See `Calls`."""


class Asking:
    """One run of calls under `limits` from the second 0 on. `now`: the second that it is."""

    def __init__(self, limits: Limits) -> None:
        self.now = 0.0
        self._limiter = Limiter(limits, self.now)
        self._numbers = itertools.count()
        self._waiting: set[Class] = set()
        self._turn = 0
        self._flying: list[tuple[float, int, Lease, Call]] = []

    def rest(self, seconds: float) -> None:
        """Let `seconds` pass in which nothing is asked."""
        self.now += seconds

    def run(self, calls: Calls) -> list[Call]:
        """Ask until nothing is left; what was asked, in the order of sending."""
        sent: list[Call] = []
        while True:
            joined = self._join(calls)
            step = self._limiter.step(self.now)
            for lease in step.granted:
                self._waiting.discard(lease.cls)
                call = calls.take(lease.cls)
                sent.append(call)
                end = self.now + call.seconds
                heapq.heappush(self._flying, (end, next(self._numbers), lease, call))
            if joined or step.granted:
                continue
            if not self._flying and not self._waiting:
                return sent
            # Without a call in flight a wake-up is always ahead: nothing fails here.
            ends = self._flying[0][0] if self._flying else step.wake_at
            self.now = max(self.now, min(ends, step.wake_at))
            self._end(calls)

    def _join(self, calls: Calls) -> bool:
        """Let one more class wait, in turn; whether there was one. The limiter decides each."""
        for cls in CLASSES[self._turn :] + CLASSES[: self._turn]:
            if cls not in self._waiting and (tokens := calls.reserve(cls)) is not None:
                self._turn = (CLASSES.index(cls) + 1) % len(CLASSES)
                self._waiting.add(cls)
                self._limiter.enqueue(str(next(self._numbers)), cls, tokens)
                return True
        return False

    def _end(self, calls: Calls) -> None:
        while self._flying and self._flying[0][0] <= self.now:
            _, _, lease, call = heapq.heappop(self._flying)
            used = round(call.tokens_in + call.tokens_out)
            self._limiter.settle(lease.id, Outcome("ok", tokens=used), self.now)
            calls.ended(call)
