"""Entries of an operation log. Pure.

Invariant: the level decides how strong the words must be: an error needs none, an entry for
information must say plainly that something failed.
"""

from __future__ import annotations

import re

from job.extractive.issues import problem
from job.extractive.machine import read_machine
from job.extractive.reading import Clause, Reading, read_clauses, worst_of
from job.extractive.spans import size
from job.extractive.tone import NONE
from job.records import Answer

_NEEDED = {"critical": 0, "error": 0, "warning": 2, "info": 3, "debug": 3, None: 2}
"""The weight of failure (see `Tone`) that makes an entry of that level a problem."""

_PREFIX = re.compile(
    r"(?:\[[^\]\n]{0,200}\]|\((?:[\w.-]{1,60})\)|[\w$-]+(?:\.[\w$-]+)+(?=\s*[:\]|-]\s)|[\w./-]+\[\d+\](?=:)|"
    r"\d[\d:.,/tz+-]{5,}|[\w.-]{1,60}\|(?:\d+\||)|(?:error|warn(?:ing)?|info|debug|fatal|trace|notice)\b(?=\s*[:\]|-])|"
    r"[a-z_$][\w$]{0,60}(?=\s+:\s))[\s:|\]-]*"
)


def operation_answer(reading: Reading) -> Answer:
    """A problem with one issue, or normal."""
    machine = read_machine(reading.text, reading.low)
    level = reading.record.level
    begin = _message_start(machine.masked, machine.head)
    found = read_clauses(machine.masked, [(begin, machine.head)], reading.rules)
    worst = worst_of(found) if found else Clause(begin, machine.head, (begin, machine.head), NONE)
    weight = max(worst.tone.failure, 3 if machine.bad else 0)
    if weight < _NEEDED[level]:
        return Answer("normal")
    if worst.tone.failure < 2:
        worst = next((clause for clause in found if size(reading.words(clause.span))), worst)
    event = machine.event if worst.tone.failure < 2 else None
    worst = worst._replace(tone=worst.tone._replace(failure=weight))
    return Answer("problem", (problem(reading, found, worst, level, machine.cause, event),))


def _message_start(low: str, head: int) -> int:
    """Where the message begins: after thread, logger, time and level."""
    start = 0
    for _ in range(6):
        match = _PREFIX.match(low, start, head)
        if match is None or match.end() == start or match.end() >= head:
            break
        start = match.end()
    return start
