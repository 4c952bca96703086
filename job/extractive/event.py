"""How wide an event is: the failing clause, and what names the things it speaks of. Pure.

Invariant: an event never runs over the cause, a line's end, or more than `LONGEST` characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from job.extractive.reading import Clause, Reading, Span
from job.extractive.spans import fold, size, trim

LONGEST = 200
MEAGRE = 8
"""An event of a smaller `size` (four words, or eight characters) may need the clause before it."""
WIDEST = 40
"""An event of at most this `size` (twenty words, or forty characters) keeps its neighbours."""


def event_span(reading: Reading, found: Sequence[Clause], span: Span, cause: Span | None) -> Span:
    """The failing clause `span` with as much around it as it needs to be understood alone."""
    return _with_subject(reading, found, _with_context(reading, found, span, cause), cause)


def _with_context(
    reading: Reading, found: Sequence[Clause], span: Span, cause: Span | None
) -> Span:
    """The span with its neighbours in the sentence, up to a "but", an "also", praise or the cause,
    while it stays short: what is near names the things that the failing clause leaves out."""
    at = next((i for i, c in enumerate(found) if c.start <= span[0] < c.end), None)
    if at is None:
        return span
    first = last = at
    while (
        first
        and not reading.turns(found[first].span)
        and _joins(reading, found[at], found[first - 1], (found[first - 1].start, span[1]), cause)
    ):
        first -= 1
        span = found[first].start, span[1]
    while (
        last + 1 < len(found)
        and not reading.turns(found[last + 1].span)
        and _joins(reading, found[at], found[last + 1], (span[0], found[last + 1].end), cause)
    ):
        last += 1
        span = span[0], found[last].end
    return span


def _joins(
    reading: Reading, clause: Clause, other: Clause, whole: Span, cause: Span | None
) -> bool:
    return (
        other.sentence == clause.sentence
        and not other.tone.praise
        and size(reading.text[slice(*whole)]) <= WIDEST
        and not (cause and whole[0] < cause[1] and cause[0] < whole[1])
    )


def _with_subject(
    reading: Reading, found: Sequence[Clause], span: Span, cause: Span | None
) -> Span:
    """The span, begun one clause earlier where it is too short to stand alone or begins with a
    pronoun."""
    alone = fold(reading.words(span))
    if size(alone) >= MEAGRE and not any(rule.pronoun.match(alone) for rule in reading.rules):
        return span
    before = [clause for clause in found if clause.end <= span[0]]
    if not before:
        return span
    start = before[-1].start
    if "\n" in reading.low[start : span[0]]:
        return span
    if cause is not None and start < cause[1] <= span[0]:
        start = cause[1]
    elif cause is not None and start <= cause[0] < span[1]:
        return span
    return span if span[1] - start > LONGEST else trim(reading.low, start, span[1])
