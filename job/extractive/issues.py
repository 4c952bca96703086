"""From clauses to issues: which clause is the event, which words are its cause, what is quoted.

Invariant: an issue's quote is a substring of the record's text of at most `LONGEST_QUOTE`
characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from job.extractive.advice import severity, suggestion
from job.extractive.cause import Split, hollow, split
from job.extractive.event import WIDEST, event_span
from job.extractive.grammar import Grammar
from job.extractive.reading import Clause, Reading, Span, read_clauses, worst_of
from job.extractive.spans import clauses, size, trim
from job.extractive.tone import tone
from job.records import Basis, Issue

LONGEST_QUOTE = 200
LEAST_CLAUSE = 6
"""The `size` (three words, six characters) of a cause that may be the first of two clauses."""
LOOKED_AHEAD = 2
"""Sentences after the event's in which its cause is looked for."""
_OBJECT = re.compile(r"[\[{<(]|-?\d[\d.]*\s*(?:[,;]|$)|\S*[@/]\S*$|(?:\w+\.){2,}\w+$")
"""What after a colon is a value and not a reason."""
_CODE = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)+|[A-Z]*[-_]?\d[\w.-]*")
"""A code names a cause and tells none."""
_LABEL = re.compile(r"(?:[:：]\s*|^)(?:error|exception|failure|错误|异常)$")


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
    if explained and (joined is None or joined.basis == "inferred" or _forward(joined)):
        joined, cause = None, explained
    span = worst.span
    basis: Basis = "stated" if cause else "inferred"
    if joined is not None:
        span, cause, basis = joined.effect, joined.cause, joined.basis
    if event is None:
        span = event_span(reading, found, span, cause)
        event = reading.words(span) or reading.words(worst.sentence) or _beginning(reading)
    reason = _reason(reading, cause, event)
    said = f"{event} {reason}" if reason else event
    return Issue(
        event=event,
        cause=reason,
        basis=basis if reason else "inferred",
        suggestion=suggestion(event, reason, basis, reading.language),
        severity=severity(said, worst.tone.failure, level, rating),
        quote=quote(reading.text, worst, span),
    )


def _reason(reading: Reading, cause: Span | None, event: str) -> str | None:
    """The words of the cause; None where there is none, where it is a mere code or number, and
    where it only says the event again."""
    reason = reading.reason(cause) if cause else ""
    if not reason or _CODE.fullmatch(reason) or _same(reason, event):
        return None
    return reason


def _same(one: str, other: str) -> bool:
    bare = ["".join(c for c in text.lower() if c.isalnum()) for text in (one, other)]
    return bare[0] == bare[1]


def _beginning(reading: Reading) -> str:
    return " ".join(reading.text[:LONGEST_QUOTE].split())


def praise(reading: Reading, found: Sequence[Clause]) -> Issue:
    """The one issue of a positive record: what was praised most."""
    good = [clause for clause in found if is_praise(reading, clause)] or found
    best = max(good, key=lambda c: (c.tone.praise, c.tone.thanks, not c.tone.trouble))
    return Issue(
        event=reading.words(best.span) or _beginning(reading),
        cause=None,
        basis="stated",
        suggestion=None,
        severity="info",
        quote=quote(reading.text, best, best.span),
    )


def is_praise(reading: Reading, clause: Clause) -> bool:
    """Whether the clause praises something: not a question, a wish, or a mere "good, thanks" to
    the other side."""
    low, rules = reading.low, reading.rules
    if not (clause.tone.praise or clause.tone.thanks):
        return False
    asked = low[clause.start : clause.end + 1].rstrip().endswith(("?", "？"))
    return not asked and not any(rule.no_praise.search(low, *clause.span) for rule in rules)


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
    if joined is None or joined.basis == "inferred":
        joined = _after_colon(reading.low, span, reading.rules) or joined
    if joined is None:
        return None
    cause = _clause(reading, joined.cause, first=not _forward(joined))
    return joined._replace(cause=cause)


def widened(reading: Reading, cause: Span, end: int) -> Span:
    """The cause and, where it names no failure itself, the next clause up to `end` that does: "it
    rained for days, the road is closed"."""
    low, rules = reading.low, reading.rules
    if size(low[slice(*cause)]) < LEAST_CLAUSE or tone(low, *cause, rules).failure >= 2:
        return cause
    after = next(iter(clauses(low, cause[1], end, rules)), None)
    if after is None or tone(low, *after, rules).failure < 2:
        return cause
    whole = cause[0], after[1]
    return whole if size(low[slice(*whole)]) <= WIDEST else cause


def _forward(joined: Split) -> bool:
    """Whether the cause was told before its effect."""
    return joined.cause[0] < joined.effect[0]


def _joined(reading: Reading, found: Sequence[Clause], worst: Clause) -> Split | None:
    """Effect and cause as the sentence of `worst` joins them, or the sentence after it does."""
    joined = explanation(reading, _segment(reading, found, worst))
    if joined is not None and not _forward(joined):
        return _narrowed(reading, joined, found)
    later = dict.fromkeys(c.sentence for c in found if c.start >= worst.sentence[1])
    for sentence in islice(later, LOOKED_AHEAD):
        after = explanation(reading, sentence)
        if after is not None:
            if hollow(reading.low[slice(*after.effect)], reading.rules):
                return after._replace(effect=joined.cause if joined else worst.span)
            if joined is None and _tells_more(reading, after, worst):
                return _narrowed(reading, after, found)
            break
    return _narrowed(reading, joined, found) if joined else None


def _tells_more(reading: Reading, joined: Split, worst: Clause) -> bool:
    """Whether a later sentence tells of no less a failure, and says why."""
    told = tone(reading.low, *joined.effect, reading.rules)
    return joined.basis == "stated" and told.failure >= max(2, worst.tone.failure)


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
        before = [c for c in found if c.end <= joined.cause[0] and not c.tone.praise]
        told = [c for c in before if c.tone.trouble]
        if not told and before and "\n" not in low[before[-1].end : joined.cause[0]]:
            told = before[-1:]
        return joined._replace(effect=worst_of(told).span) if told else None
    parts = read_clauses(low, [joined.effect], rules)
    effect = worst_of(parts)
    if not effect.tone.trouble and not _forward(joined):
        effect = parts[-1]
    felt = effect.tone.mood and not (effect.tone.failure or effect.tone.complaint)
    if felt and not _forward(joined):
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


def _clause(reading: Reading, span: Span, first: bool) -> Span:
    """The first or last clause of the span that says anything."""
    found = clauses(reading.low, *span, reading.rules)
    telling = [c for c in found if size(reading.low[slice(*c)]) >= 3]
    return telling[0 if first else -1] if telling else span
