"""syslog's "message repeated 5 times" -> five records.

Invariant: a line that stands for n messages becomes n records, so that what is counted is what
happened. All have the line's position and time; `copy` numbers them. A count that no syslog writes
(above MOST_REPEATS) is not believed: its line stays one record, with a flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from job.records import Raw, Rejected

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
_MARK = "message repeated "
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
        said = before.value
        if repeated := _repeated_in(said):
            said = said[: repeated.start()] + repeated[2]
        timed = _TIMED.match(said)
        if timed and match["host"] in (None, timed["host"]):
            yield from _copies(line, match["time"] + said[timed.end() :], match["count"])
            return
    yield line


def with_repeats(rows: Iterable[Raw | Rejected]) -> Iterator[Raw | Rejected]:
    """The rows, each as many times as it says it was repeated. Nearly none says so: looking for it
    must cost next to nothing."""
    for row in rows:
        value = row.value if type(row) is Raw else None
        if type(value) is str:
            if _MARK in value and isinstance(row, Raw):
                yield from _repeated(row, value)
                continue
        elif type(value) is dict and isinstance(row, Raw):
            for name in _FIELDS:
                text = value.get(name)
                if type(text) is str and _MARK in text:
                    yield from _repeated(row, text, name)
                    break
            else:
                yield row
            continue
        yield row


def _repeated(raw: Raw, text: str, name: str | None = None) -> Iterator[Raw]:
    """The records that a raw record stands for; `name`: of the field that holds the text."""
    match = _repeated_in(text)
    if match is None:
        yield raw
        return
    said = text[: match.start()] + match[2]
    value = said if name is None else {**raw.value, name: said}  # type: ignore[dict-item]
    yield from _copies(raw, value, match[1])


def _repeated_in(text: str) -> re.Match[str] | None:
    """Without the bracket at its end each mark in a text would be looked behind to that end."""
    return _REPEATED.search(text) if text.rstrip().endswith("]") else None


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
