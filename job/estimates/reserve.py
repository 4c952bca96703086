"""Output tokens to keep free for answers, learned from those that came. Pure.

Invariant: nothing is learned from a cut answer; until enough of a kind were seen, in this run or
earlier ones, a fixed number stands in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from job.estimates.moments import Moments
from job.records import LANES, Kind, Lane

RESERVE_TOKENS = 80
"""Output tokens of one answer, until enough of its kind were seen."""
LEARN_FROM = 50
"""Answers of a kind before their own mean is trusted."""

KindLane = tuple[Kind, Lane]


@dataclass(slots=True)
class Reserve:
    """Output tokens an answer takes, learned per kind and lane: n x mean + 2 x deviation x sqrt(n),
    a bound that 98 of 100 packs keep if answers are independent.

    `earlier`: what earlier runs say, of bounded weight; `own`: what this one has seen.
    """

    earlier: Mapping[KindLane, Moments] = field(default_factory=dict)
    own: dict[KindLane, Moments] = field(default_factory=dict)

    def observe(self, kind: Kind, lane: Lane, answer_tokens: int) -> None:
        """Learn from one answer."""
        self.own[kind, lane] = self.own.get((kind, lane), Moments()).seen(answer_tokens)

    def known(self, kind: Kind, lane: Lane) -> Moments | None:
        """The answers to go by: those of the lane, or of the whole kind where these are too few;
        None where those are too."""
        in_lane = self._of(kind, lane)
        if in_lane.n >= LEARN_FROM:
            return in_lane
        of_kind = Moments()
        for each in LANES:
            of_kind = of_kind.merged(self._of(kind, each))
        return of_kind if of_kind.n >= LEARN_FROM else None

    def needed(self, kind: Kind, lane: Lane, n: int) -> int:
        """Output tokens to keep free for `n` answers."""
        known = self.known(kind, lane)
        if known is None:
            return RESERVE_TOKENS * n
        return math.ceil(n * known.mean + 2 * known.deviation * math.sqrt(n))

    def expected(self, kind: Kind, lane: Lane, n: int) -> float:
        """Output tokens that `n` answers take, about."""
        known = self.known(kind, lane)
        return n * (RESERVE_TOKENS if known is None else known.mean)

    def _of(self, kind: Kind, lane: Lane) -> Moments:
        own = self.own.get((kind, lane), Moments())
        return own.merged(self.earlier.get((kind, lane), Moments()))
