"""Token buckets: how much may be sent now, how long until more may.

Invariant: over any span of t seconds at most capacity + rate * t is taken, debts apart (an amount
above the capacity is let through when the bucket is full, and paid off before anything else).
"""

from __future__ import annotations

PACE = 0.98
"""Of a known limit, the part that is used: clocks and rounding differ on the two sides."""

SKEW = 0.25
"""Seconds by which the time between two grants may shrink on the way to the provider: the first
request of a burst pays for DNS, TCP and TLS, the later ones ride its connection. A bucket that is
smaller than the provider's by this much refill cannot overdraw it: between any two arrivals s
seconds apart at most capacity - rate * SKEW + PACE * rate * (s + SKEW) requests were granted, which
is below capacity + rate * s."""

_ROUNDING = 1e-6
"""Seconds of refill that a float clock cannot tell apart."""


class TokenBucket:
    """`rate` units a second flow in, up to `capacity`. Starts full. Times are seconds."""

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        self.rate = rate
        self.capacity = capacity
        self._level = capacity
        self._at = now

    def level(self, now: float) -> float:
        """Units in the bucket; negative while a debt is paid off."""
        if now > self._at:
            self._level = min(self.capacity, self._level + self.rate * (now - self._at))
            self._at = now
        return self._level

    def ready_at(self, amount: float, now: float) -> float:
        """The time from which `amount` may be taken: `now` or later."""
        missing = min(amount, self.capacity) - self.level(now)
        if missing <= self.rate * _ROUNDING:
            return now
        return max(now, self._at) + missing / self.rate

    def full_at(self, now: float) -> float:
        """The time at which it is full if nothing is taken."""
        return self.ready_at(self.capacity, now)

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, into debt if need be."""
        self._level = self.level(now) - amount

    def put_back(self, amount: float, now: float) -> None:
        """Return what was taken and not used; a negative `amount` is what was used besides."""
        self._level = min(self.capacity, self.level(now) + amount)

    def lower_to(self, level: float, now: float) -> None:
        """The provider says there is less in its bucket than we thought."""
        self._level = min(self.level(now), level)

    def empty_until(self, until: float, now: float) -> None:
        """Nothing is left, and nothing flows in before `until`."""
        self.lower_to(0.0, now)
        self._at = max(self._at, until)

    def resize(self, rate: float, capacity: float, now: float) -> None:
        """Go on from the present level with another rate and capacity."""
        self._level = min(self.level(now), capacity)
        self.rate = rate
        self.capacity = capacity


def capacity_for(rate: float, burst: float) -> float:
    """The capacity that never overdraws a provider's bucket of `burst` units refilled at `rate` a
    second, however the requests are delayed by up to SKEW seconds; at least half of it, since a
    bucket of one request cannot be protected that way."""
    return max(burst - rate * SKEW, burst / 2, min(burst, 1.0))
