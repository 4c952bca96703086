"""How many calls may be in flight: additive increase, multiplicative decrease.

Invariant: 1 <= limit <= cap; however many calls of one generation fail, they halve it once.
"""

from __future__ import annotations

START = 5
NEAR = 0.9
"""From this part of the remembered ceiling on, growth is slow."""
ROUNDS_NEAR = 2
"""Rounds of good calls for one more near the ceiling. In simulation, a provider that takes 12 calls
is kept at 11.0 with 2.7 % of 503s, and 110 calls at 60 a minute of which 15 % fail by chance last
101 s instead of 55."""


class Concurrency:
    """Grows by one per good call, halves when the provider is overloaded, remembers where.

    Calls are known by their number in the order of granting.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._limit = float(min(START, cap))
        self._ceiling: float | None = None
        self._halved_at_call = 0
        self._high = self._limit
        self._good_since_halving = 0

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    def set_cap(self, cap: int) -> None:
        """Another upper bound; the limit keeps what fits."""
        self._cap = cap
        self._limit = min(self._limit, float(cap))

    def good(self, in_use: int) -> None:
        """A call went well while `in_use` were in flight, itself included.

        The limit grows only while more than half of it is used: a limit nobody has tried means
        nothing. One call more than the ceiling, kept up for two rounds, shows that it has gone.
        """
        self._good_since_halving += 1
        if in_use <= self._limit / 2:
            return
        grown = self._limit + 1
        if self._ceiling is not None:
            near = self._ceiling * NEAR
            if self._limit >= self._ceiling + 1:
                self._ceiling = None
            elif self._limit >= near:
                grown = self._limit + 1 / (ROUNDS_NEAR * self._limit)
            else:
                grown = min(grown, near)
        self._limit = min(grown, float(self._cap))

    def overloaded(self, call: int, last_call: int) -> None:
        """Call number `call` got a 503 or no answer in time; `last_call` was granted last.

        A call that began before the last halving ran under the old limit and does not halve again.
        A failure below the remembered ceiling may be chance: it lowers the ceiling half way only.
        """
        if call <= self._halved_at_call:
            return
        self._halved_at_call = last_call
        # A halving after less than a round of good calls belongs to the trouble before it.
        settled = self._good_since_halving >= self._limit
        self._high = self._limit if settled else max(self._high, self._limit)
        self._good_since_halving = 0
        if self._ceiling is None or self._limit >= self._ceiling:
            self._ceiling = self._limit
        else:
            self._ceiling = (self._ceiling + self._limit) / 2
        self._limit = max(1.0, self._limit / 2)

    def outage_over(self) -> None:
        """The breaker has closed: the outage counts as one halving, however many it caused, and
        says nothing of the ceiling."""
        self._ceiling = None
        self._limit = min(max(self._limit, self._high / 2), float(self._cap))
