"""How often a key may ask, and for how many tokens. Pure: values and a clock in, decisions out.

Invariant: what is refused takes nothing; over any t seconds a key gets at most a minute's worth and
what flows in during t, tokens by what was expected of a request until it ends and then by what it
took. What is reserved may be used at any later time, so that it and what is left are together at
most a minute's worth.
"""

from __future__ import annotations

import math
from typing import Literal

from serve.ask.buckets import TokenBucket

MINUTE = 60.0

Rate = Literal["requests", "tokens"]


class KeyRates:
    """The rates of one key. Times are seconds of one clock that never goes back."""

    def __init__(self, rpm: float | None, tpm: float | None, now: float) -> None:
        """Requests and tokens per minute; None: as many as come."""
        self._limits: dict[Rate, float | None] = {"requests": rpm, "tokens": tpm}
        self._buckets = {
            rate: TokenBucket(limit / MINUTE, _capacity(limit), now)
            for rate, limit in self._limits.items()
            if limit is not None
        }
        self._reserved: dict[Rate, float] = {"requests": 0.0, "tokens": 0.0}

    def adjust(self, rpm: float | None, tpm: float | None, now: float) -> None:
        """Go on under other limits; what was used stays used."""
        limits: dict[Rate, float | None] = {"requests": rpm, "tokens": tpm}
        if limits == self._limits:
            return
        for rate, limit in limits.items():
            bucket = self._buckets.get(rate)
            if limit is None:
                self._buckets.pop(rate, None)
            elif bucket is None:
                self._buckets[rate] = TokenBucket(limit / MINUTE, _capacity(limit), now)
            else:
                bucket.resize(limit / MINUTE, _capacity(limit), now)
        self._limits = limits

    def limit(self, rate: Rate) -> float | None:
        """Per minute."""
        return self._limits[rate]

    def wait(self, tokens: int, now: float) -> tuple[Rate, float] | None:
        """What a request of `tokens` must wait for longest, and the seconds; None: it may go. One
        of more tokens than the limit may go when nothing is used, and is paid off after."""
        self._cap(now)
        waits = [
            (bucket.ready_at(amount, now) - now, rate)
            for rate, amount in self._amounts(tokens)
            if (bucket := self._buckets.get(rate)) is not None
        ]
        seconds, rate = max(waits, default=(0.0, "requests"))
        return (rate, seconds) if seconds > 0 else None

    def take(self, tokens: int, now: float) -> None:
        """A request of `tokens` goes."""
        for rate, amount in self._amounts(tokens):
            if (bucket := self._buckets.get(rate)) is not None:
                bucket.take(amount, now)

    def settle(self, expected: int, taken: int, now: float) -> None:
        """A request for which `expected` tokens were taken took `taken`."""
        self.put_back(0, expected - taken, now)

    def give_back(self, tokens: int, now: float) -> None:
        """A request that was to take `tokens` did not go."""
        self.put_back(1, tokens, now)

    def put_back(self, requests: float, tokens: float, now: float) -> None:
        """What was taken and not used; below zero: what was used besides."""
        self._cap(now)
        amounts: tuple[tuple[Rate, float], ...] = (("requests", requests), ("tokens", tokens))
        for rate, amount in amounts:
            if (bucket := self._buckets.get(rate)) is not None:
                bucket.put_back(amount, now)
        self._cap(now)

    def room(self, tokens: float, part: float, now: float) -> float:
        """How many requests of `tokens` each take that part of what is left; infinity: as many as
        come."""
        self._cap(now)
        each: tuple[tuple[Rate, float], ...] = (("requests", 1.0), ("tokens", tokens))
        rooms = [
            bucket.level(now) * part / amount
            for rate, amount in each
            if amount > 0 and (bucket := self._buckets.get(rate)) is not None
        ]
        return min(rooms, default=math.inf)

    def full(self, now: float) -> bool:
        """Whether nothing that was used counts any more."""
        return all(bucket.full_at(now) <= now for bucket in self._buckets.values())

    def reserve(self, requests: float, tokens: float, now: float) -> None:
        """Take so much, to be used later."""
        self._cap(now)
        amounts: tuple[tuple[Rate, float], ...] = (("requests", requests), ("tokens", tokens))
        for rate, amount in amounts:
            self._reserved[rate] += amount
            if (bucket := self._buckets.get(rate)) is not None:
                bucket.take(amount, now)

    def unreserve(self, requests: float, tokens: float, now: float) -> None:
        """What was reserved is used; what is not comes by `put_back`."""
        self._cap(now)
        self._reserved["requests"] -= requests
        self._reserved["tokens"] -= tokens

    def _cap(self, now: float) -> None:
        """Let no more flow in than there is room for beside what is reserved. To be called before
        that changes."""
        for rate, bucket in self._buckets.items():
            if self._reserved[rate] > 0:
                bucket.lower_to(bucket.capacity - self._reserved[rate], now)

    @staticmethod
    def _amounts(tokens: int) -> tuple[tuple[Rate, float], tuple[Rate, float]]:
        return ("requests", 1.0), ("tokens", float(tokens))


def _capacity(limit: float) -> float:
    """A minute's worth, and never less than one request: a key of half a request per minute may
    ask once every two minutes."""
    return max(limit, 1.0)
