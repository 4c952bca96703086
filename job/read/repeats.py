"""syslog's "message repeated 5 times" -> five records.

Invariant: a line that stands for n messages becomes n records, so that what is counted is what
happened. All have the line's position and time; `copy` numbers them. A count that no syslog writes
(above MOST_REPEATS) is not believed: its line stays one record, with a flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from job.records import Raw

MOST_REPEATS = 10_000
"""Records of one line. A flood is below it; a hostile count must not fill the disk."""
_REPEATED = re.compile(
    r"(?:\A|(?<=: ))message repeated (\d{1,30}) times: \[ ?(.*?) ?\]\s*\Z", re.DOTALL
)
_TIME = r"(?:[A-Z][a-z]{2}[ ]+\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-][\d:]+)?)"
_LAST = re.compile(
    rf"(?P<time>{_TIME})(?: (?P<host>[\w.-]{{1,80}}))?(?: [\w./-]{{1,60}}(?:\[\d{{1,9}}\])?:)?"
    r" last message repeated (?P<count>\d{1,30}) times?\s*\Z"
)
_LAST_MARK = " last message repeated "
_TIMED = re.compile(rf"{_TIME}(?= (?P<host>[\w.-]{{1,80}}))")
_FIELDS = ("message", "msg", "log", "MESSAGE")


def may_hold_last(text: str) -> bool:
    """Whether one of many lines may say that the message before it came again."""
    return _LAST_MARK in text


def is_last_repeated(line: str) -> bool:
    """Whether a line says that the message before it came again: it belongs to that one."""
    return _LAST_MARK in line and _LAST.match(line) is not None


def last_again(line: Raw, before: Raw | None) -> Iterator[Raw]:
    """The records that a "last message repeated" line stands for, given the one before it; the
    line itself where that is of another host, or no text."""
    match = _LAST.match(str(line.value))
    if match and before and isinstance(before.value, str):
        said = _REPEATED.sub(lambda found: found[2], before.value)
        timed = _TIMED.match(said)
        if timed and match["host"] in (None, timed["host"]):
            yield from _copies(line, match["time"] + said[timed.end() :], match["count"])
            return
    yield line


def each(raw: Raw) -> Iterator[Raw]:
    """The records that a raw record stands for: itself, or as many as it says."""
    value = raw.value
    if isinstance(value, str):
        if match := _REPEATED.search(value):
            yield from _copies(raw, value[: match.start()] + match[2], match[1])
            return
    elif isinstance(value, dict):
        for name in _FIELDS:
            if isinstance(text := value.get(name), str) and (match := _REPEATED.search(text)):
                yield from _copies(raw, value | {name: text[: match.start()] + match[2]}, match[1])
                return
    yield raw


def may_repeat(raw: Raw) -> bool:
    """Whether a raw record may stand for several: a look that costs next to nothing."""
    value = raw.value
    if type(value) is str:
        return "message repeated " in value
    return type(value) is dict and any(
        type(text := value.get(name)) is str and "message repeated " in text for name in _FIELDS
    )


def _copies(raw: Raw, value: Any, count: str) -> Iterator[Raw]:
    number = int(count)
    if number > MOST_REPEATS:
        yield replace(raw, flags=tuple(sorted({*raw.flags, "repeats_not_believed"})))
        return
    flags = tuple(sorted({*raw.flags, "repeated"}))
    for copy in range(number):
        yield replace(raw, value=value, flags=flags, copy=copy)
    if not number:
        yield raw
