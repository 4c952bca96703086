"""Conversations between a user and an assistant or agent. Pure.

Invariant: the user's turns say what went wrong; the assistant's count only for what it admits it
could not do. A turn that asks for work ("write a story about a failed climb") is material, not a
report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from job.extractive.cause import hollow
from job.extractive.issues import explanation, is_praise, praise, problem, widened
from job.extractive.reading import Clause, Reading, Span, read_clauses, worst_of
from job.extractive.spans import Turn, clauses, sentences, size, turns
from job.extractive.tone import NONE, tone
from job.records import Answer

OUTSPOKEN = 2
"""The praise (see `Tone`) that makes a conversation positive: a mere liking does not."""
SPARSE = 3
"""Of a smaller `size` nothing can be told."""
CERTAIN = 3
LONG = 160
"""Characters of the user's turns above which a single likely sign may be talk by the way."""
HINTS = 3
"""Likely signs that make a long conversation a problem where none is certain."""
BRIEF = 250
"""Characters of a reply that answers a report and is no essay."""
LEAST_EXPLAINED = 6
"""The `size` (three words, six characters) of an explanation; less is a name or a "yes"."""
_COMMA = re.compile(r"[,，:：;；]\s*")
_BARE = re.compile(r"^\W+|\W+$")
APOLOGETIC = 2
"""Sentences at the beginning of a turn in which an assistant says what it cannot do."""


def conversation_answer(reading: Reading) -> Answer:
    """A problem with one issue, else what the user praised, else normal."""
    said = turns(reading.low)
    found = [clause for turn in said if turn.user for clause in _reported(reading, turn)]
    told = found if _tells_of_trouble(found) else _acknowledged(reading, said, found)
    if told:
        worst = worst_of(told)
        if not worst.tone.trouble:
            worst = max(told, key=reading.tells)
        reason = _answered_cause(reading, said, worst)
        return Answer("problem", (problem(reading, found, worst, explained=reason),))
    for turn in said:
        if not turn.user and (admitted := _admitted(reading, turn)):
            return Answer("problem", (problem(reading, admitted, worst_of(admitted)),))
    pleased = [clause for clause in found if _outspoken(reading, clause)]
    pleased = pleased or _thanked(reading, said, found)
    if pleased:
        return Answer("positive", (praise(reading, pleased),))
    return Answer("normal" if size(reading.low) >= SPARSE else "unclear")


def _outspoken(reading: Reading, clause: Clause) -> bool:
    """Whether the clause praises plainly, and not only agrees ("perfect", 那挺好的)."""
    said = _BARE.sub("", reading.low[slice(*clause.span)])
    return (
        clause.tone.praise >= OUTSPOKEN
        and is_praise(reading, clause)
        and not any(rule.assent.fullmatch(said) for rule in reading.rules)
    )


def _tells_of_trouble(found: Sequence[Clause]) -> bool:
    """Whether the user's clauses report a problem; the more is said, the less one hint means."""
    weights = [clause.tone.trouble for clause in found]
    if max(weights, default=0) == CERTAIN:
        return True
    length = sum(clause.end - clause.start for clause in found)
    needed = 1 if length <= LONG else HINTS
    return sum(weight >= 2 for weight in weights) >= needed


def _reported(reading: Reading, turn: Turn) -> list[Clause]:
    """The clauses of a user's turn; those of requests without their tone."""
    low, rules = reading.low, reading.rules
    reported: list[Clause] = []
    material = False
    for sentence in sentences(low, turn.start, turn.end):
        asks = any(rule.task.match(low, *sentence) for rule in rules)
        about_self = any(rule.about_self.search(low, *sentence) for rule in rules)
        material = material or (asks and not about_self and sentence[0] == turn.start)
        clauses = read_clauses(low, [sentence], rules)
        if material or (asks and not about_self):
            clauses = [clause._replace(tone=NONE) for clause in clauses]
        reported += clauses
    return reported


def _acknowledged(reading: Reading, said: Sequence[Turn], found: Sequence[Clause]) -> list[Clause]:
    """What the user reported in words without a sign, and the other side took for a problem: it
    said sorry, or spoke in a few words of a failure itself."""
    low, rules = reading.low, reading.rules
    if _asks_for_work(reading, said):
        return []
    for told, reply in _answers(said, found):
        sorry = any(rule.apology.search(low, reply.start, reply.end) for rule in rules)
        brief = reply.end - reply.start <= BRIEF
        if sorry or (brief and tone(low, reply.start, reply.end, rules).failure >= 2):
            return told
    return []


def _asks_for_work(reading: Reading, said: Sequence[Turn]) -> bool:
    """Whether the conversation opens with a task: what comes later is about that work."""
    first = next((turn for turn in said if turn.user), None)
    if first is None:
        return False
    opening = next(sentences(reading.low, first.start, first.end), (first.start, first.end))
    return any(rule.task.match(reading.low, *opening) for rule in reading.rules) and not any(
        rule.about_self.search(reading.low, *opening) for rule in reading.rules
    )


def _thanked(reading: Reading, said: Sequence[Turn], found: Sequence[Clause]) -> list[Clause]:
    """What the user liked a little and the other side gave thanks for."""
    for told, reply in _answers(said, found):
        grateful = any(
            rule.gratitude.search(reading.low, reply.start, reply.end) for rule in reading.rules
        )
        if grateful and any(clause.tone.praise for clause in told):
            return told
    return []


def _answers(said: Sequence[Turn], found: Sequence[Clause]) -> Iterator[tuple[list[Clause], Turn]]:
    """What the user told, not asked for, in a turn, and the other side's turn after it."""
    for turn, reply in pairwise(said):
        if turn.user and not reply.user:
            told = [c for c in found if turn.start <= c.start < turn.end and c.tone is not NONE]
            if told:
                yield told, reply


def _answered_cause(reading: Reading, said: Sequence[Turn], worst: Clause) -> Span | None:
    """The cause that the other side gives in its next turn after the report."""
    low, rules = reading.low, reading.rules
    reply = next((turn for turn in said if not turn.user and turn.start >= worst.end), None)
    if reply is None:
        return None
    concerned = any(
        pattern.search(low, reply.start, reply.end)
        for rule in rules
        for pattern in (rule.apology, rule.finding)
    )
    for sentence in sentences(low, reply.start, reply.end):
        joined = explanation(reading, sentence)
        if joined is None or joined.basis != "stated":
            continue
        effect = low[slice(*joined.effect)]
        if concerned or hollow(effect, rules) or tone(low, *joined.effect, rules).failure >= 2:
            return widened(reading, joined.cause, sentence[1])
    return _after_apology(reading, reply)


def _after_apology(reading: Reading, reply: Turn) -> Span | None:
    """What the other side says next to being sorry, unless it promises, asks or thanks: why."""
    low, rules = reading.low, reading.rules
    sorry = False
    told: Span | None = None
    if reply.end - reply.start > BRIEF:
        return None
    for sentence in islice(sentences(low, reply.start, reply.end), APOLOGETIC):
        for start, end in clauses(low, *sentence, rules):
            apology = next(
                (m for r in rules for m in [r.apology.search(low, start, end)] if m), None
            )
            if apology is not None:
                sorry = True
                rest = _COMMA.search(low, apology.end(), end)
                start = rest.end() if rest else end
            if not sorry or size(low[start:end]) < LEAST_EXPLAINED:
                continue
            if any(rule.promise.match(low, start, end) for rule in rules):
                return told
            told = told or (start, end)
            if tone(low, start, end, rules).failure >= 2:
                return start, end
    return told


def _admitted(reading: Reading, turn: Turn) -> list[Clause]:
    """The clauses of the sentence in which the assistant says that it could not do something."""
    low, rules = reading.low, reading.rules
    for sentence in islice(sentences(low, turn.start, turn.end), APOLOGETIC):
        if any(rule.admission.search(low, *sentence) for rule in rules):
            clauses = read_clauses(low, [sentence], rules)
            if worst_of(clauses).tone.failure >= 2:
                return clauses
    return []
