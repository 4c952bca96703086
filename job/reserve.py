"""Output tokens to keep free for answers, learned from those that came. Pure.

Invariant: nothing is learned from a cut answer; until enough of a kind were seen a fixed number
stands in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from job.records import Kind

RESERVE_TOKENS = 80
"""Output tokens of one answer, until enough of its kind were seen."""
LEARN_FROM = 50
"""Answers of a kind before their own mean is trusted."""


@dataclass(slots=True)
class Reserve:
    """Output tokens an answer takes, learned per kind: n x mean + 2 x deviation x sqrt(n), a bound
    that 98 of 100 packs keep if answers are independent. Welford's running moments."""

    seen: dict[Kind, int] = field(default_factory=dict)
    mean: dict[Kind, float] = field(default_factory=dict)
    moment: dict[Kind, float] = field(default_factory=dict)

    def observe(self, kind: Kind, answer_tokens: int) -> None:
        """Learn from one answer."""
        n = self.seen.get(kind, 0) + 1
        mean = self.mean.get(kind, 0.0)
        delta = answer_tokens - mean
        mean += delta / n
        self.seen[kind], self.mean[kind] = n, mean
        self.moment[kind] = self.moment.get(kind, 0.0) + delta * (answer_tokens - mean)

    def needed(self, kind: Kind, n: int) -> int:
        """Output tokens to keep free for `n` answers."""
        seen = self.seen.get(kind, 0)
        if seen < LEARN_FROM:
            return RESERVE_TOKENS * n
        deviation = math.sqrt(self.moment[kind] / (seen - 1))
        return math.ceil(n * self.mean[kind] + 2 * deviation * math.sqrt(n))
