"""The head of a plain-text log record: its time and its level, and what remains to be read.

Invariant: only a time or a level that stands where log layouts put them is taken out; the rest of
the record (thread, logger, message, stack trace) stays as it was.
"""

from __future__ import annotations

import re
from datetime import date, datetime, tzinfo
from typing import NamedTuple

from job.clean.scales import LEVELS
from job.times import leading, parse
from job.words import listed

_WORDS = listed(
    "TRACE, DEBUG, VERBOSE, INFO, NOTICE, WARNING, WARN, ERROR, ERR, SEVERE, CRITICAL, CRIT",
    "FATAL, ALERT, EMERGENCY, EMERG, PANIC",
)
"""Of all words for a level those that a layout writes in capitals without more ado."""
_UPPER = "|".join(_WORDS)
_ANY = "|".join(sorted(LEVELS, key=len, reverse=True))
_CALLED = "|".join((*_WORDS, *(word for word in LEVELS if not word.isascii())))
_GAP = r"[ \t]*(?:(?:[:|,：]|-(?=\s))[ \t]*){0,4}"
_END = r"(?=[\s:：|,\-\[(]|\Z)"
_LEVEL = re.compile(
    rf"{_GAP}(?:(?P<plain>{_UPPER})[0-9]?{_END}"
    rf"|[\[(<【](?P<boxed>(?i:{_ANY}))[\])>】]"
    rf"|(?P<called>{_CALLED}|{_UPPER.lower()})(?=[:：|]))"
)
"""A level that comes next: in capitals, in brackets, or before a colon or a bar. `Error:` is how
the messages of exceptions begin and none."""
_COLUMNS = re.compile(
    r"""
    (?P<before> [ \t]*
      (?: \[[^\]\n]{0,80}\] [ \t]*                                         # [main]
        | \| [^|\n]{0,80} (?=\|)                                            # |web
        | (?:-[ \t])? [\w.$/-]{1,80} [ \t]+ - (?=[ \t]) [ \t]*              # - root -
        | [^\s|]{1,80} [ \t]+ [\w./-]{1,60} \[\d{1,9}\] : [ \t]+          # host app[7]:
      ){1,3} )
    """
    rf"{_GAP}[\[(<]?(?P<level>{_UPPER})[\])>]?{_END}",
    re.VERBOSE,
)
"""A level after columns: `[main] INFO`, `- root - ERROR -`, `|web|WARN|`, `host app[7]: ERROR:`."""
_SYSLOG = re.compile(
    r"[ \t]*(?P<host>[\w.-]{1,80})[ \t]+(?P<service>[\w./-]{1,60})(?:\[\d{1,9}\])?:"
)
_ACCESS = re.compile(r"\[(\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})\] ?")
_ACCESS_WITHIN = 200
"""Characters before the time of an access log: a host, an identity and a user."""
_SEPARATORS = re.compile(_GAP)


class Head(NamedTuple):
    """What the head of a log record says, and the text without its time and level."""

    text: str
    time: datetime | None = None
    level: str | None = None
    host: str | None = None
    service: str | None = None


def read_head(text: str, reference: date, zone: tzinfo) -> Head:
    """Take the time and the level from the start of a log record. `reference` and `zone` fill in
    what the time's notation leaves open."""
    found = leading(text, reference, zone)
    if found is not None:
        time, end = found
        host = service = None
        if not text[:1].isdigit() and (match := _SYSLOG.match(text, end)):
            host, service = match["host"], match["service"]
        level, rest = _level(text[end:])
        return Head(rest, time, level, host, service)
    level, rest = _level(text) if not text[:1].islower() else (None, text)
    if level and (found := leading(rest, reference, zone)):
        return Head(_without_separators(rest[found[1] :]), found[0], level)
    if (match := _ACCESS.search(text, 0, _ACCESS_WITHIN)) and (
        moment := parse(match[1], reference, zone)
    ):
        return Head(text[: match.start()] + text[match.end() :], moment, level)
    return Head(rest if level else text, None, level)


def _level(text: str) -> tuple[str | None, str]:
    if match := _LEVEL.match(text):
        word = match["plain"] or match["boxed"] or match["called"]
        return LEVELS[word.lower()], _without_separators(text[match.end() :])
    if match := _COLUMNS.match(text):
        joint = "|" if "|" in match["before"] else ""
        rest = match["before"] + joint + _without_separators(text[match.end() :])
        return LEVELS[match["level"].lower()], _without_separators(rest)
    return None, _without_separators(text)


def _without_separators(text: str) -> str:
    return text[_SEPARATORS.match(text).end() :]  # type: ignore[union-attr]
