"""Chats of which each message is a row of its own -> conversations.

Invariant: the rows of one session that stand near one another in a file are one record, in their
order; a row without a session is a conversation by itself. What all rows of a conversation agree
on stands beside its messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from job.clean.shape import SAID, SENT, SPEAKER, plain, shape_of
from job.read.weave import Line
from job.records import Raw, Rejected

_CHAT_SHARE = 0.9
_NOT_CHATS = ("level", "rating", "turns")
_SPEAKERS = tuple(name for name in SPEAKER if name not in ("author", "name"))
"""Authors and names stand in reviews and tickets too."""
_OF_TURNS = frozenset((*SAID, *SPEAKER, *SENT))


@dataclass(frozen=True, slots=True)
class ChatNames:
    """What a user says of an input's chats: what its map calls the session and the text of a
    message, and whether there are any (`wanted`; None: that is not said)."""

    session: str | None = None
    text: str | None = None
    wanted: bool | None = None

    def is_message(self, row: Any) -> bool:
        """Whether a row names its session and its speaker, says something, and is no log line and
        no review."""
        if not isinstance(row, dict) or self.wanted is False:
            return False
        speakers = SPEAKER if self.wanted else _SPEAKERS
        shape = shape_of(tuple(row))
        named = {plain(name): value for name, value in row.items()}
        said = self.text in row if self.text else any(n in named for n in (*SAID, "toolcalls"))
        return (
            said
            and self.session_of(row) is not None
            and any(isinstance(named.get(name), str | dict) and named[name] for name in speakers)
            and not any(shape.of(part) for part in _NOT_CHATS)
        )

    def session_of(self, row: dict[str, Any]) -> str | None:
        """The session that a row names."""
        names = (self.session,) if self.session else shape_of(tuple(row)).of("session")
        for name in names:
            value = row.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return str(value)
        return None


NO_NAMES = ChatNames()


def are_messages(rows: Sequence[Any], names: ChatNames) -> bool:
    """Whether rows are messages of chats: nearly each of them is one."""
    rows = [row for row in rows if isinstance(row, dict)]
    return len(rows) > 1 and sum(map(names.is_message, rows)) >= _CHAT_SHARE * len(rows)


def message_lines(rows: Iterable[Raw | Rejected], names: ChatNames) -> Iterator[Line | Rejected]:
    """Rows with their sessions; one that is no message is a stream of its own. The sign keeps a
    session apart from those, whatever its name is."""
    for row in rows:
        if isinstance(row, Rejected):
            yield row
        elif isinstance(row.value, dict) and names.is_message(row.value):
            session = names.session_of(row.value)
            if names.text and plain(names.text) not in SAID:
                row = replace(row, value={**row.value, "content": row.value[names.text]})
            yield Line(row, f"={session}", str(row.value))
        else:
            yield Line(row, f"\0{row.position}")


def goes_on(before: Line, line: Line) -> bool:
    """Every message goes on with the one before it in its session."""
    return before.stream == line.stream


def join_messages(lines: list[Line], names: ChatNames = NO_NAMES) -> Raw:
    """The conversation of messages; a row that is none stays as it is."""
    first = lines[0].raw
    if str(lines[0].stream).startswith("\0"):
        return first
    rows = [line.raw.value for line in lines if isinstance(line.raw.value, dict)]
    flags = tuple(sorted({flag for line in lines for flag in line.raw.flags}))
    return replace(first, value={**_agreed(rows, names), "messages": rows}, flags=flags)


def _agreed(rows: list[dict[str, Any]], names: ChatNames) -> dict[str, Any]:
    """What is said of a conversation: the fields that are no turn's own and have one value in all
    rows that have a value."""
    agreed: dict[str, Any] = {}
    disputed = set()
    for row in rows:
        for name, value in row.items():
            if value in (None, "") or name == names.text or plain(name) in _OF_TURNS:
                continue
            if agreed.setdefault(name, value) != value:
                disputed.add(name)
    return {name: value for name, value in agreed.items() if name not in disputed}
