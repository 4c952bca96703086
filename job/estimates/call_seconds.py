"""How long calls take, learned from those that ended, and when to give one up. Pure.

Invariant: no call is given less time than FLOOR_SECONDS nor more than the design allows; a call
that took all its time counts as that long, so that a provider that slows down is given more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from job.estimates.moments import Line
from job.estimates.reserve import KindLane
from job.records import Kind, Lane

ANSWER_SECONDS = 15.0
TOKENS_A_SECOND = 20.0
LONGEST_SECONDS = 60.0
"""Timeout of a call before enough were seen: 15 s + reserve / 20 tokens a second, at most 60 s,
twice that in the slow lane (DESIGN 4)."""
SLOW_TIMES = 2.0
TRUST_FROM = 10
"""Calls of a kind and lane before their own time is trusted."""
DEVIATIONS = 6.0
MEANS = 3.0
"""A call is given up after the greater of three times what is expected and six deviations more: of
any distribution at most 1 in 36 lies beyond six."""
FLOOR_SECONDS = 5.0
"""Connecting anew, a queue at the provider, a collection of garbage here: below, a call is not
slow, only unlucky."""
GUESS_SECONDS = 0.7
GUESS_SECONDS_A_TOKEN = 0.5e-3
"""The provider that fupan was designed against took 1.2 s for 1,000 input tokens and 3.1 s for
4,000, with answers of a quarter of that: what a call takes is guessed so where none was seen."""
EXPECT_FROM = 3
"""Calls of a kind and lane from which on their own time says more than this guess."""


@dataclass(slots=True)
class CallSeconds:
    """Seconds of a call by its tokens, input and output together, learned per kind and lane.

    `earlier`: what earlier runs say, of bounded weight; `own`: what this one has seen.
    """

    earlier: Mapping[KindLane, Line] = field(default_factory=dict)
    own: dict[KindLane, Line] = field(default_factory=dict)

    def observe(self, kind: Kind, lane: Lane, tokens: float, seconds: float) -> None:
        """Learn from one call."""
        self.own[kind, lane] = self.own.get((kind, lane), Line()).seen(tokens, seconds)

    def known(self, kind: Kind, lane: Lane, calls: int = TRUST_FROM) -> Line | None:
        """The calls to go by; None where fewer than `calls` were seen."""
        own = self.own.get((kind, lane), Line())
        line = own.merged(self.earlier.get((kind, lane), Line()))
        return line if line.n >= calls else None

    def expected(self, kind: Kind, lane: Lane, tokens: float) -> float:
        """What a call of `tokens` takes, about."""
        line = self.known(kind, lane, EXPECT_FROM)
        if line is None:
            return GUESS_SECONDS + GUESS_SECONDS_A_TOKEN * tokens
        return line.at(tokens)

    def timeout(self, kind: Kind, lane: Lane, tokens: float, reserve: int, again: bool) -> float:
        """When to give a call of `tokens` up that may answer with `reserve`. `again`: its records
        were given up on before, so what was learned may be wrong for them."""
        times = SLOW_TIMES if lane == "slow" else 1.0
        line = None if again else self.known(kind, lane)
        if line is None:
            return times * min(LONGEST_SECONDS, ANSWER_SECONDS + reserve / TOKENS_A_SECOND)
        expected = line.at(tokens)
        wanted = max(MEANS * expected, expected + DEVIATIONS * line.deviation, FLOOR_SECONDS)
        return min(wanted, times * LONGEST_SECONDS)
