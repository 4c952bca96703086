"""How many calls may be in flight: additive increase, multiplicative decrease.

Invariant: 1 <= limit <= cap; however many calls of one generation fail, they halve it once.
"""

from __future__ import annotations

START = 5
REGION = 0.9
"""From this part of the remembered ceiling on, growth is slow."""


class Concurrency:
    """Grows by one per good call, halves when the provider is overloaded, remembers where.

    Calls are known by their number in the order of granting. A call that began before the last
    halving ran under the old limit: its end, good or bad, says nothing about the new one.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._limit = float(min(START, cap))
        self._ceiling: float | None = None
        self._halved_at = 0

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    def set_cap(self, cap: int) -> None:
        """Another upper bound; the limit keeps what fits."""
        self._cap = cap
        self._limit = min(self._limit, float(cap))

    def good(self, call: int, in_use: int) -> None:
        """Call number `call` went well while `in_use` were in flight, itself included.

        The limit grows only while more than half of it is used: a limit nobody has tried means
        nothing. Near the ceiling it grows by one per round of calls; a whole round above it without
        a failure shows that the ceiling has gone.
        """
        if call <= self._halved_at or in_use <= self._limit / 2:
            return
        step = 1.0
        if self._ceiling is not None:
            if self._limit >= self._ceiling + 1:
                self._ceiling = None
            elif self._limit >= self._ceiling * REGION:
                step = 1 / self._limit
        self._limit = min(self._limit + step, float(self._cap))

    def overloaded(self, call: int, last_call: int) -> None:
        """Call number `call` got a 503 or no answer in time; `last_call` was granted last.

        A failure below the remembered ceiling may be chance: it lowers the ceiling half way only.
        """
        if call <= self._halved_at:
            return
        self._halved_at = last_call
        if self._ceiling is None or self._limit >= self._ceiling:
            self._ceiling = self._limit
        else:
            self._ceiling = (self._ceiling + self._limit) / 2
        self._limit = max(1.0, self._limit / 2)
