"""Reviews and other feedback of users. Pure.

Invariant: a rating says how the words are meant on the whole, the words say what about: two stars
without a complaint are still a problem, four stars none unless the words tell of a failure.
"""

from __future__ import annotations

from collections.abc import Sequence

from job.extractive.issues import praise, problem
from job.extractive.reading import Clause, Reading, read_clauses, worst_of
from job.extractive.spans import size
from job.records import Answer, Issue

MOST_ISSUES = 3
SPARSE = 5
"""Text of a smaller `size` (two words, four characters) that shows no sign says nothing."""
LIKELY = 2
"""The weight of failure (see `Tone`) of what a "but" sets against praise."""
CLEAR = 2
"""The praise (see `Tone`) that makes feedback with a middling rating positive."""
BEST = 5
"""The rating that is praise in itself."""
LONG = 60
"""`size` above which an unrated review may name a trouble by the way; below it any counts."""
OUTWEIGHED = 0.75
"""Praise above this share of the trouble wins in a long unrated review: found on rated reviews of
restaurants with their ratings withheld."""


def feedback_answer(reading: Reading) -> Answer:
    """What the feedback complains of, or else praises."""
    found = _turned(reading, read_clauses(reading.low, [(0, len(reading.low))], reading.rules))
    rating = five_stars(reading.record.rating)
    trouble = sum(c.tone.trouble for c in found if c.tone.trouble >= 2)
    hints = sum(c.tone.trouble for c in found if c.tone.trouble == 1)
    good = sum(c.tone.praise for c in found)
    certain = any(c.tone.failure == 3 for c in found)
    thanks = any(c.tone.thanks for c in found)

    if rating is not None and rating >= 4:
        # Complaints and no word of praise contradict the stars: the words say how bad it is.
        against = good == 0 and any(c.tone.complaint or c.tone.mood for c in found)
        bad = certain or against
        rating = None if against else rating
    elif rating is not None and rating <= 2:
        bad = trouble + hints > 0 or good < CLEAR
    elif trouble:
        bad = size(reading.low) <= LONG or good <= OUTWEIGHED * trouble
    else:
        bad = hints > good
    if bad:
        return Answer("problem", _issues(reading, found, rating))
    enough = 1 if rating is None or rating >= 4 else CLEAR
    if good >= enough or (thanks and not trouble) or rating == BEST:
        return Answer("positive", (praise(reading, found),))
    return Answer("normal" if size(reading.low) >= SPARSE else "unclear")


def five_stars(rating: float | None) -> float | None:
    """The rating on a scale of five: above 5 it was out of ten, above 10 out of a hundred."""
    if rating is None or rating <= 5:
        return rating
    return rating / 2 if rating <= 10 else rating / 20


def _turned(reading: Reading, found: Sequence[Clause]) -> list[Clause]:
    """The clauses, and what comes after praise and a "but" without praise of its own is trouble."""
    turned: list[Clause] = []
    for clause in found:
        before = turned[-1] if turned else None
        if (
            before is not None
            and before.sentence == clause.sentence
            and before.tone.praise > before.tone.trouble
            and not (clause.tone.praise or clause.tone.trouble)
            and any(rule.contrast.match(reading.low, *clause.span) for rule in reading.rules)
        ):
            clause = clause._replace(tone=clause.tone._replace(failure=LIKELY))
        turned.append(clause)
    return turned


def _issues(reading: Reading, found: Sequence[Clause], rating: float | None) -> tuple[Issue, ...]:
    """One issue for each of the heaviest groups, in the order of the text; groups that lead to the
    same words are one."""
    groups = _groups(reading, found)
    if not groups:
        return (problem(reading, found, max(found, key=reading.tells), rating=rating),)
    solid = [g for g in groups if _weight(g) >= 2 and not _only_mood(g)] or groups
    heaviest = sorted(solid, key=_weight, reverse=True)[:MOST_ISSUES]
    issues = [
        problem(reading, found, worst_of(group), rating=rating)
        for group in sorted(heaviest, key=lambda g: g[0].start)
    ]
    return tuple({(issue.event, issue.cause): issue for issue in issues}.values())


def _groups(reading: Reading, found: Sequence[Clause]) -> list[list[Clause]]:
    """The clauses of trouble, a new group wherever praise, a "but" or an "also" comes between."""
    groups: list[list[Clause]] = []
    apart = True
    for clause in found:
        if reading.turns(clause.span):
            apart = True
        if clause.tone.trouble:
            if apart:
                groups.append([])
            groups[-1].append(clause)
            apart = False
        elif clause.tone.praise:
            apart = True
    return groups


def _weight(group: Sequence[Clause]) -> int:
    return max(clause.tone.trouble for clause in group)


def _only_mood(group: Sequence[Clause]) -> bool:
    return not any(clause.tone.failure or clause.tone.complaint for clause in group)
