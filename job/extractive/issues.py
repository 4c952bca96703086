"""From clauses to issues: which clause is the event, which words are its cause, what is quoted.

Invariant: an issue's quote is a substring of the record's text of at most `LONGEST_QUOTE`
characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from job.extractive.cause import Split, hollow, split
from job.extractive.grammar import Grammar
from job.extractive.spans import clauses, fold, sentences, size, trim
from job.extractive.tone import Tone, tone
from job.extractive.wording import severity, suggestion, tidy
from job.instructions import Language
from job.records import Basis, Issue, Record

LONGEST_QUOTE = 200
MEAGRE = 8
"""An event of a smaller `size` (four words, or eight characters) may need the clause before it."""
WIDEST = 40
"""An event of at most this `size` (twenty words, or forty characters) keeps its neighbours."""
LOOKED_AHEAD = 2
"""Sentences after the event's in which its cause is looked for."""
_OBJECT = re.compile(r"[\[{<(]|\S*[@/]\S*$|(?:\w+\.){2,}\w+$")
"""What after a colon is a value and not a reason."""
_LABEL = re.compile(r"(?:[:：]\s*|^)(?:error|exception|failure|错误|异常)$")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """A record under analysis; `low` is its text in lower case, of the same length."""

    record: Record
    low: str
    rules: tuple[Grammar, ...]
    language: Language

    @property
    def text(self) -> str:
        """The record's text."""
        return self.record.text

    def words(self, span: Span) -> str:
        """The words of a span, made short."""
        return tidy(self.text[slice(*span)], self.rules)


class Clause(NamedTuple):
    """A clause, the sentence it stands in, and how it is meant."""

    start: int
    end: int
    sentence: Span
    tone: Tone

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.start, self.end


def read_clauses(low: str, spans: Iterable[Span], rules: tuple[Grammar, ...]) -> list[Clause]:
    """All clauses of the spans with their tones. `low` may have parts blanked out."""
    return [
        Clause(*span, sentence, tone(low, *span, rules))
        for start, end in spans
        for sentence in sentences(low, start, end)
        for span in clauses(low, *sentence, rules)
    ]


def worst_of(found: Sequence[Clause]) -> Clause:
    """The clause that tells most of trouble: about a thing before a feeling, then the first."""
    return max(found, key=lambda c: (max(c.tone[:2]), c.tone.failure, c.tone.mood))


def problem(
    reading: Reading,
    found: Sequence[Clause],
    worst: Clause,
    level: str | None = None,
    cause: Span | None = None,
    event: str | None = None,
    rating: float | None = None,
    explained: Span | None = None,
) -> Issue:
    """The issue around the `worst` of the clauses `found`. `cause` and `event`, where machine
    notation already gave them, come before what the sentence says; a cause that was `explained`
    elsewhere comes after what it states."""
    joined = None if cause else _joined(reading, found, worst)
    if explained and (joined is None or joined.basis == "inferred"):
        joined, cause = None, explained
    span = worst.span
    basis: Basis = "stated" if cause else "inferred"
    if joined is not None:
        span, cause, basis = joined.effect, joined.cause, joined.basis
    if event is None:
        span = _with_context(reading, found, span, cause)
        span = _with_subject(reading, found, span, cause)
        event = reading.words(span)
    reason = reading.words(cause) if cause else event
    return Issue(
        event=event,
        cause=reason,
        basis=basis,
        suggestion=suggestion(event, reason, basis, reading.language),
        severity=severity(f"{event} {reason}", worst.tone.failure, level, rating),
        quote=quote(reading.text, worst, span),
    )


def praise(reading: Reading, found: Sequence[Clause]) -> Issue:
    """The one issue of a positive record: what was praised most."""
    best = max(found, key=lambda c: (c.tone.praise, c.tone.thanks, not c.tone.trouble))
    return Issue(
        event=reading.words(best.span),
        cause=None,
        basis="stated",
        suggestion=None,
        severity="info",
        quote=quote(reading.text, best, best.span),
    )


def quote(text: str, clause: Clause, span: Span) -> str | None:
    """The whole sentence where it is short enough, else the span, else its beginning."""
    start, end = min(clause.sentence[0], span[0]), max(clause.sentence[1], span[1])
    if end - start > LONGEST_QUOTE:
        start, end = span
    start, end = trim(text, start, min(end, start + LONGEST_QUOTE))
    return text[start:end] or None


def explanation(reading: Reading, span: Span) -> Split | None:
    """Effect and cause as the span joins them, the cause cut down to one clause."""
    joined = split(reading.low, *span, reading.rules)
    if joined is None:
        return _after_colon(reading.low, span, reading.rules)
    backward = joined.effect[0] < joined.cause[0]
    cause = _first(reading, joined.cause) if backward else _last(reading, joined.cause)
    return joined._replace(cause=cause)


def _joined(reading: Reading, found: Sequence[Clause], worst: Clause) -> Split | None:
    """Effect and cause as the sentence of `worst` joins them, or the sentence after it does."""
    joined = explanation(reading, _segment(reading, found, worst))
    if joined is not None:
        return _narrowed(reading, joined, found)
    later = dict.fromkeys(c.sentence for c in found if c.start >= worst.sentence[1])
    for sentence in islice(later, LOOKED_AHEAD):
        joined = explanation(reading, sentence)
        if joined is not None:
            if hollow(reading.low[slice(*joined.effect)], reading.rules):
                return joined._replace(effect=worst.span)
            return None
    return None


def _segment(reading: Reading, found: Sequence[Clause], worst: Clause) -> Span:
    """The part of the sentence that holds `worst`, up to a "but" on either side."""
    start, end = worst.sentence
    for clause in found:
        if clause.sentence != worst.sentence:
            continue
        if any(rule.contrast.match(reading.low, *clause.span) for rule in reading.rules):
            if clause.start <= worst.start:
                start = clause.start
            else:
                end = min(end, clause.start)
    return start, end


def _narrowed(reading: Reading, joined: Split, found: Sequence[Clause]) -> Split | None:
    """`joined` with the effect cut down to the clause that tells of the trouble."""
    low, rules = reading.low, reading.rules
    if hollow(low[slice(*joined.effect)], rules):
        before = [c for c in found if c.end <= joined.cause[0] and c.tone.trouble >= 2]
        return joined._replace(effect=worst_of(before).span) if before else None
    effect = worst_of(read_clauses(low, [joined.effect], rules))
    felt = effect.tone.mood and not (effect.tone.failure or effect.tone.complaint)
    if felt and joined.effect[0] < joined.cause[0]:
        return Split(joined.cause, joined.cause, "inferred")
    return joined._replace(effect=effect.span)


def _after_colon(low: str, segment: Span, rules: tuple[Grammar, ...]) -> Split | None:
    """`failure: reason`, as logs and people write it."""
    for mark in re.finditer(r"[:：](?=\s|[\u3400-\u9fff])", low[slice(*segment)]):
        effect = trim(low, segment[0], segment[0] + mark.start())
        cause = trim(low, segment[0] + mark.end(), segment[1])
        if (
            size(low[slice(*effect)]) >= 4
            and size(low[slice(*cause)]) >= 2
            and not _OBJECT.match(low, *cause)
            and not _LABEL.search(low, *effect)
            and tone(low, *effect, rules).failure >= 2
        ):
            return Split(effect, cause, "stated")
    return None


def _first(reading: Reading, span: Span) -> Span:
    """The first clause of the span that says anything."""
    found = clauses(reading.low, *span, reading.rules)
    return next((c for c in found if size(reading.low[slice(*c)]) >= 3), span)


def _last(reading: Reading, span: Span) -> Span:
    found = clauses(reading.low, *span, reading.rules)
    return next((c for c in reversed(found) if size(reading.low[slice(*c)]) >= 3), span)


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
        and not _turns(reading, found[first])
        and _joins(reading, found[at], found[first - 1], (found[first - 1].start, span[1]), cause)
    ):
        first -= 1
        span = found[first].start, span[1]
    while (
        last + 1 < len(found)
        and not _turns(reading, found[last + 1])
        and _joins(reading, found[at], found[last + 1], (span[0], found[last + 1].end), cause)
    ):
        last += 1
        span = span[0], found[last].end
    return span


def _turns(reading: Reading, clause: Clause) -> bool:
    return any(
        rule.contrast.match(reading.low, *clause.span)
        or rule.addition.match(reading.low, *clause.span)
        for rule in reading.rules
    )


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
    return span if span[1] - start > LONGEST_QUOTE else trim(reading.low, start, span[1])
