"""Good, bad or undecided: what a comparison comes to, and why. Pure.

The yardstick of agreement is the model's own noise: the first side is asked once more about a part
of the records, and the other side may agree with it by TOLERATED less than it agrees with itself.

Where the first side was asked in packs too, an answer that differs towards the end of a pack may be
the fault of either: then nobody is named ("one_fades").

Invariant: where the two sides answer alike, each reason for "bad" is given 1 time in 100 at most;
a reason is one word of a fixed set (`job/report` has a sentence for each in both languages).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from job.compare.chance import least_difference, sign_test
from job.compare.positions import ALPHA, Fade

Word = Literal["good", "bad", "undecided"]
Reason = Literal[
    "alike",
    "fades",
    "one_fades",
    "more_failed",
    "more_review",
    "differs",
    "maybe_differs",
    "too_few",
    "short_packs",
]
LEAST_RECORDS = 40
"""Records that both sides answered; from fewer nothing follows."""
TOLERATED = 0.05
"""By how much less the second side may agree with the first than the first with itself."""
MORE_FAILED = 0.01
MORE_REVIEW = 0.02
"""By how much the share of records that fail, or that a person should review, may grow."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows. `position`, `before`, `after`: where answers fade, where that is the reason; of
    any other reason `before` is what the first side has and `after` the second (of agreement: what
    the first has with itself, and the second with it). `longest`: records in the longest pack that
    was tried, None without packs. `records`: that both sides answered."""

    word: Word
    reason: Reason
    before: float = 0.0
    after: float = 0.0
    position: int | None = None
    longest: int | None = None
    records: int = 0

    @property
    def bad(self) -> bool:
        """Whether the second side should not be used as it is."""
        return self.word == "bad"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "verdict": self.word,
            "reason": self.reason,
            "before": round(self.before, 4),
            "after": round(self.after, 4),
            "position": self.position,
            "longest_pack": self.longest,
            "records": self.records,
        }


@dataclass(frozen=True, slots=True)
class Grown:
    """In how many of `of` records something befell one side alone, and how often each."""

    first: int
    second: int
    only_first: int
    only_second: int
    of: int

    def beyond(self, tolerated: float) -> bool:
        """Whether the second side has more of it than is tolerated, and not by chance."""
        more = (self.second - self.first) / self.of if self.of else 0.0
        return more > tolerated and sign_test(self.only_second, self.only_first) <= ALPHA


@dataclass(frozen=True, slots=True)
class Agreed:
    """Records of which both sides say the same, of those that both answered; and those of which
    the first says the same twice, of those it was asked about twice."""

    same: int
    of: int
    itself: int
    itself_of: int


@dataclass(frozen=True, slots=True)
class Tried:
    """Records in the longest pack of the second side (0: no packs). `short`: a run has longer ones,
    since none of these was full; `both`: the first side was asked in packs too."""

    longest: int = 0
    short: bool = False
    both: bool = False


NO_PACKS = Tried()


def decide(
    fade: Fade | None, failed: Grown, review: Grown, agreed: Agreed, tried: Tried = NO_PACKS
) -> Verdict:
    """The verdict; the first reason that holds is given, the one that says most about what to do
    before the others."""
    word, reason, before, after = _reason(fade, failed, review, agreed, tried)
    position = fade.position if fade and reason in ("fades", "one_fades") else None
    return Verdict(word, reason, before, after, position, tried.longest or None, agreed.of)


def _reason(
    fade: Fade | None, failed: Grown, review: Grown, agreed: Agreed, tried: Tried
) -> tuple[Word, Reason, float, float]:
    if fade is not None and fade.found:
        return "bad", "one_fades" if tried.both else "fades", fade.before, fade.after
    if failed.beyond(MORE_FAILED):
        return "bad", "more_failed", failed.first / failed.of, failed.second / failed.of
    if review.beyond(MORE_REVIEW):
        return "bad", "more_review", review.first / review.of, review.second / review.of
    if min(agreed.of, agreed.itself_of) < LEAST_RECORDS:
        return "undecided", "too_few", 0.0, 0.0
    own, other = agreed.itself / agreed.itself_of, agreed.same / agreed.of
    if own - other <= TOLERATED and tried.short:
        return "undecided", "short_packs", own, other
    if own - other <= TOLERATED:
        return "good", "alike", own, other
    if least_difference(agreed.itself, agreed.itself_of, agreed.same, agreed.of) > 0:
        return "bad", "differs", own, other
    return "undecided", "maybe_differs", own, other
