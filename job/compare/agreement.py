"""How far two sets of answers to the same records agree, field by field. Pure.

Invariant: only records that both sides answered are compared (with an answer to review too), each
once; the fields of issues are compared in the pairs of `matching.py`, and an issue that has no
partner counts against the number of issues only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from job.compare.matching import match_issues
from job.compare.meaning import Aspect, Meaning, aspect_of_event, texts_of
from job.records import KINDS, Issue, Kind, Result

Field = Literal["outcome", "issues", "severity", "basis", "event", "cause", "suggestion", "quote"]
FIELDS: tuple[Field, ...] = get_args(Field)
"""`issues`: their number."""
WORDED: tuple[Field, ...] = ("event", "cause", "suggestion")
"""Compared by meaning too."""

Pair = tuple[Result, Result]


@dataclass(slots=True)
class Count:
    """How often a field was compared and how often it was equal; `meant`: equal or the same by
    meaning, None for a field that is no wording."""

    of: int = 0
    exact: int = 0
    meant: int | None = None

    def add(self, exact: bool, meant: bool | None = None) -> None:
        """One comparison more."""
        self.of += 1
        self.exact += exact
        if meant is not None:
            self.meant = (self.meant or 0) + (exact or meant)

    def as_json(self) -> dict[str, Any]:
        """Numbers and shares."""
        return {
            "of": self.of,
            "exact": self.exact,
            "exact_share": share(self.exact, self.of),
            "meant": self.meant,
            "meant_share": None if self.meant is None else share(self.meant, self.of),
        }


@dataclass(slots=True)
class Agreement:
    """The counts of each field, over all records and by their kind; `same`: whether the two answers
    to a record say the same, by its id; `same_by_kind` counts them."""

    fields: dict[Field, Count] = field(default_factory=dict)
    by_kind: dict[Kind, dict[Field, Count]] = field(default_factory=dict)
    same: dict[str, bool] = field(default_factory=dict)
    same_by_kind: dict[Kind, Count] = field(default_factory=dict)

    @property
    def agreeing(self) -> int:
        """Records of which both say the same."""
        return sum(self.same.values())

    def as_json(self) -> dict[str, Any]:
        """Everything but what was said of single records."""
        return {
            "records": len(self.same),
            "same": self.agreeing,
            "same_share": share(self.agreeing, len(self.same)),
            "fields": {name: count.as_json() for name, count in self.fields.items()},
            "by_kind": {
                kind: {
                    "records": self.same_by_kind[kind].of,
                    "same": self.same_by_kind[kind].exact,
                    "fields": {name: count.as_json() for name, count in counts.items()},
                }
                for kind, counts in self.by_kind.items()
            },
        }


def share(part: int, whole: int) -> float | None:
    """A part of the whole, to four digits; None of nothing."""
    return round(part / whole, 4) if whole else None


def pairs_of(first: Iterable[Result], second: Iterable[Result]) -> list[Pair]:
    """The answers that both sides gave to one record, in the order of `first`."""
    others = {result.record.id: result for result in second if result.outcome is not None}
    return [
        (result, others[result.record.id])
        for result in first
        if result.outcome is not None and result.record.id in others
    ]


def texts_to_place(pairs: Iterable[Pair]) -> dict[Aspect, set[str]]:
    """The texts whose meaning decides, by aspect: those of answers that are not equal anyhow."""
    return texts_of(
        (issue, result.outcome == "positive")
        for pair in pairs
        if pair[0].issues != pair[1].issues
        for result in pair
        for issue in result.issues
    )


def agreement(pairs: Sequence[Pair], meaning: Meaning) -> Agreement:
    """How far the two sides of `pairs` agree."""
    found = Agreement()
    for first, second in pairs:
        kind = first.record.kind
        counts = (found.fields, found.by_kind.setdefault(kind, {}))
        said = list(_said(first, second, meaning))
        for name, exact, meant in said:
            for group in counts:
                group.setdefault(name, Count()).add(exact, meant)
        decisive = ("outcome", "issues", "event", "cause")
        same = all(exact or bool(meant) for name, exact, meant in said if name in decisive)
        found.same[first.record.id] = same
        found.same_by_kind.setdefault(kind, Count()).add(same)
    found.fields = _in_order(found.fields)
    kinds = [kind for kind in KINDS if kind in found.by_kind]
    found.by_kind = {kind: _in_order(found.by_kind[kind]) for kind in kinds}
    found.same_by_kind = {kind: found.same_by_kind[kind] for kind in kinds}
    return found


def _said(
    first: Result, second: Result, meaning: Meaning
) -> Iterable[tuple[Field, bool, bool | None]]:
    """Each field of two answers: its name, whether it is equal, and whether it means the same."""
    yield "outcome", first.outcome == second.outcome, None
    yield "issues", len(first.issues) == len(second.issues), None
    positive = first.outcome == second.outcome == "positive"
    for mine, theirs in match_issues(first.issues, second.issues, meaning, positive):
        yield "severity", mine.severity == theirs.severity, None
        yield "basis", mine.basis == theirs.basis, None
        yield from _wordings(mine, theirs, meaning, positive)
        yield "quote", mine.quote == theirs.quote, None


def _wordings(
    mine: Issue, theirs: Issue, meaning: Meaning, positive: bool
) -> Iterable[tuple[Field, bool, bool | None]]:
    event = aspect_of_event(positive)
    yield "event", mine.event == theirs.event, meaning.same(event, mine.event, theirs.event)
    if not positive:
        yield "cause", mine.cause == theirs.cause, meaning.same("cause", mine.cause, theirs.cause)
        yield (
            "suggestion",
            mine.suggestion == theirs.suggestion,
            meaning.same("suggestion", mine.suggestion, theirs.suggestion),
        )


def _in_order(counts: dict[Field, Count]) -> dict[Field, Count]:
    return {name: counts[name] for name in FIELDS if name in counts}
