"""The issues that two answers give of one record, best to best. Pure.

Invariant: each issue is in one pair at most, and as many pairs are made as the shorter answer has
issues.
"""

from __future__ import annotations

from collections.abc import Sequence

from job.compare.meaning import Meaning, aspect_of_event
from job.records import Issue


def match_issues(
    first: Sequence[Issue], second: Sequence[Issue], meaning: Meaning, positive: bool = False
) -> list[tuple[Issue, Issue]]:
    """The pairs, in the order of `first`: the two that are most alike in event and cause are one,
    then the two most alike of the others. `positive`: the issues say what was praised."""
    aspect = aspect_of_event(positive)
    ranked = sorted(
        (
            -meaning.likeness(aspect, mine.event, theirs.event)
            - meaning.likeness("cause", mine.cause, theirs.cause),
            row,
            column,
        )
        for row, mine in enumerate(first)
        for column, theirs in enumerate(second)
    )
    partner: dict[int, int] = {}
    for _, row, column in ranked:
        if row not in partner and column not in partner.values():
            partner[row] = column
    return [(first[row], second[column]) for row, column in sorted(partner.items())]
