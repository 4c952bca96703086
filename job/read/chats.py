"""Chats of which each message is a row of its own -> conversations.

Invariant: the rows of one session that stand near one another in a file are one record, in their
order; a row without a session is a conversation by itself. What all rows of a conversation agree
on stands beside its messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from job.read.weave import Line
from job.records import Raw, Rejected
from job.shape import SAID, SENT, SPEAKER, plain, shape_of

_CHAT_SHARE = 0.9
_NOT_CHATS = ("level", "rating", "turns")
_OF_TURNS = frozenset((*SAID, *SPEAKER, *SENT))


def are_messages(rows: Sequence[Any]) -> bool:
    """Whether rows are messages of chats: nearly each names its session and its speaker, says
    something, and is no log line and no review."""
    rows = [row for row in rows if isinstance(row, dict)]
    return len(rows) > 1 and sum(map(_is_message, rows)) >= _CHAT_SHARE * len(rows)


def _is_message(row: dict[str, Any]) -> bool:
    shape = shape_of(tuple(row))
    named = {plain(name): value for name, value in row.items()}
    return (
        _session_of(row) is not None
        and any(isinstance(named.get(name), str | dict) and named[name] for name in SPEAKER)
        and any(name in named for name in (*SAID, "toolcalls"))
        and not any(shape.of(part) for part in _NOT_CHATS)
    )


def _session_of(row: dict[str, Any]) -> str | None:
    for name in shape_of(tuple(row)).of("session"):
        value = row[name]
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return None


def message_lines(rows: Iterable[Raw | Rejected]) -> Iterator[Line | Rejected]:
    """Rows with their sessions; one that is no message is a stream of its own."""
    for row in rows:
        if isinstance(row, Rejected):
            yield row
        elif isinstance(row.value, dict) and _is_message(row.value):
            yield Line(row, _session_of(row.value), str(row.value))
        else:
            yield Line(row, f"\0{row.position}")


def goes_on(before: Line, line: Line) -> bool:
    """Every message goes on with the one before it in its session."""
    return before.stream == line.stream


def join_messages(lines: list[Line]) -> Raw:
    """The conversation of messages; a row that is none stays as it is."""
    first = lines[0].raw
    rows = [line.raw.value for line in lines if isinstance(line.raw.value, dict)]
    if not rows or not _is_message(rows[0]):
        return first
    flags = tuple(sorted({flag for line in lines for flag in line.raw.flags}))
    return replace(first, value={**_agreed(rows), "messages": rows}, flags=flags)


def _agreed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What is said of a conversation: the fields that are no turn's own and have one value in all
    rows that have a value."""
    agreed: dict[str, Any] = {}
    disputed = set()
    for row in rows:
        for name, value in row.items():
            if value in (None, "") or plain(name) in _OF_TURNS:
                continue
            if agreed.setdefault(name, value) != value:
                disputed.add(name)
    return {name: value for name, value in agreed.items() if name not in disputed}
