"""Two ways of asking about the same records, compared. Pure.

Invariant: both sides hold a result for each record of the sample, in the same order; what a side
was asked and what it cost stands beside what it answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from job.compare.agreement import Agreement, agreement, pairs_of, share, texts_to_place
from job.compare.meaning import Aspect, Meaning
from job.compare.positions import Fade, Place, Seen, by_bin, by_position, find_fade
from job.compare.verdict import Agreed, Grown, Tried, Verdict, decide
from job.records import Result, Via
from serve.ask.ask import CallCounts

_ENDS_WORSE: tuple[Via, Via] = ("failed", "review")


@dataclass(frozen=True, slots=True)
class Side:
    """What one way of asking gave. `places`: where records stood in packs when they were first
    asked about, by id; none for records asked alone or in parts. `seconds`: from the first request
    to the last answer; `money`: None where no price is known; `short_packs`: a run of more records
    has longer packs, since each of these ended for want of records."""

    name: str
    results: Sequence[Result]
    places: Mapping[str, Place]
    calls: CallCounts
    seconds: float
    money: Decimal | None = None
    currency: str = ""
    short_packs: bool = False

    def count(self, via: Via) -> int:
        """Records that ended so."""
        return sum(result.via == via for result in self.results)

    def as_json(self) -> dict[str, Any]:
        """What it cost, and how the records ended."""
        of = len(self.results)
        return {
            "name": self.name,
            "records": of,
            "review": self.count("review"),
            "review_share": share(self.count("review"), of),
            "failed": self.count("failed"),
            "failed_share": share(self.count("failed"), of),
            "calls": asdict(self.calls),
            "money": None if self.money is None else str(self.money),
            "currency": self.currency or None,
            "minutes": round(self.seconds / 60, 2),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """`first` against `second`. `again`: `first` asked once more about a part, and `noise` how far
    it agrees with itself."""

    first: Side
    second: Side
    again: Side
    agreement: Agreement
    noise: Agreement
    seen: Sequence[Seen]
    fade: Fade | None
    verdict: Verdict
    about: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Everything, as `compare.json` holds it."""
        return {
            **self.verdict.as_json(),
            **self.about,
            "first": self.first.as_json(),
            "second": self.second.as_json(),
            "first_again": self.again.as_json(),
            "agreement": self.agreement.as_json(),
            "noise": self.noise.as_json(),
            "places": {
                "fade": None if self.fade is None else self.fade.as_json(),
                "by_bin": by_bin(self.seen),
                "by_position": by_position(self.seen),
            },
        }


def texts_of_sides(first: Side, second: Side, again: Side) -> dict[Aspect, set[str]]:
    """The texts whose meaning `compare` needs."""
    pairs = pairs_of(first.results, second.results) + pairs_of(first.results, again.results)
    return texts_to_place(pairs)


def compare(
    first: Side, second: Side, again: Side, meaning: Meaning, about: Mapping[str, Any] | None = None
) -> Comparison:
    """Compare `second` with `first`, by what `first` agrees with itself in `again`. `about`: what
    else is to stand in the JSON."""
    both = agreement(pairs_of(first.results, second.results), meaning)
    noise = agreement(pairs_of(first.results, again.results), meaning)
    answered = {r.record.id for r in first.results if r.outcome is not None}
    seen = [
        Seen(place, place.came and both.same.get(record, False))
        for record, place in second.places.items()
        if record in answered
    ]
    fade = find_fade(seen)
    agreed = Agreed(both.agreeing, len(both.same), noise.agreeing, len(noise.same))
    failed, review = (_grown(first, second, via) for via in _ENDS_WORSE)
    longest = max((place.size for place in second.places.values()), default=0)
    tried = Tried(longest, second.short_packs, both=bool(first.places))
    verdict = decide(fade, failed, review, agreed, tried)
    return Comparison(first, second, again, both, noise, seen, fade, verdict, about or {})


def _grown(first: Side, second: Side, via: Via) -> Grown:
    pairs = [
        (mine.via == via, theirs.via == via)
        for mine, theirs in zip(first.results, second.results, strict=True)
    ]
    return Grown(
        sum(mine for mine, _ in pairs),
        sum(theirs for _, theirs in pairs),
        sum(mine and not theirs for mine, theirs in pairs),
        sum(theirs and not mine for mine, theirs in pairs),
        len(pairs),
    )
