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

_AGAIN = re.compile(
    r"\bretrying\b|\balready tried \d+ times?|\breconnecting\b|\btrying again\b"
    r"|(?:正在|开始|即将)重试|第\s*\d+\s*次重试|正在重连|重新尝试连接"
)
"""What a program does only after something failed, whatever the level it says so at."""
_NOTICED = re.compile(r"\b(?!(?:no|not|none|never|nothing|without)\b)\w+ detected\b|检测到|监测到")
_DENIED = re.compile(r"\b(?:no|not|none|never|nothing|without|0|zero)\b|未|没有|无")
"""What a warning says it noticed is what it warns of, unless it noticed nothing."""

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
        implied = _implied(machine.masked, level, found)
        if implied is None:
            return Answer("normal")
        worst = implied
        weight = worst.tone.failure
    elif worst.tone.failure < 2:
        worst = next((clause for clause in found if size(reading.words(clause.span))), worst)
    event = machine.event if worst.tone.failure < 2 else None
    worst = worst._replace(tone=worst.tone._replace(failure=weight))
    return Answer("problem", (problem(reading, found, worst, level, machine.cause, event),))


def _implied(low: str, level: str | None, found: list[Clause]) -> Clause | None:
    """The clause that tells of a failure without a word of one, by what the program does."""
    for clause in found:
        if _AGAIN.search(low, *clause.span):
            return clause._replace(tone=clause.tone._replace(failure=3))
        if level == "warning" and _NOTICED.search(low, *clause.span):
            if _DENIED.search(low, *clause.span):
                continue
            return clause._replace(tone=clause.tone._replace(failure=2))
    return None


def _message_start(low: str, head: int) -> int:
    """Where the message begins: after thread, logger, time and level."""
    start = 0
    for _ in range(6):
        match = _PREFIX.match(low, start, head)
        if match is None or match.end() == start or match.end() >= head:
            break
        start = match.end()
    return start
