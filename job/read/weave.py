"""Lines of several streams woven into one file -> the records of each stream.

Invariant: which lines make a record does not depend on where the file was cut. A line goes on with
the last one of its own stream if that began at most WINDOW_BYTES before, so a slice that looks back
that far knows which of its lines belong to records that began before it; the slice in which a
record begins has all of it. A line that names no stream belongs to the line before it. Nothing is
held back longer than the window is, but for the lines of one record, of which each PART_BYTES are
a part of its own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from job.records import Raw, Rejected

WINDOW_BYTES = 1 << 20
"""Between two lines of a record: the messages of some thousand chats at once, 6 % of a slice."""
PART_BYTES = 1 << 18
"""A longer record is given in parts: a stream without an end must not fill the memory."""
_HELD = 10_000
"""Finished records that wait for an earlier one before order is given up."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file: `stream`, None where it names none; `said`, what it says itself; `ends`:
    whether what it says ends with it."""

    raw: Raw
    stream: str | None
    said: str = ""
    ends: bool = True


@dataclass(slots=True)
class _Record:
    lines: list[Line] = field(default_factory=list)
    rejected: Rejected | None = None
    size: int = 0
    done: bool = False
    part: bool = False
    in_stream: bool = False
    """Whether the next line of a stream may still go on with it."""


@dataclass(slots=True)
class _Stream:
    """The last line of a stream that names it, and its record if that is this slice's."""

    line: Line
    record: _Record | None


class Weave:
    """`goes_on`: whether a line belongs to the record of the one before it in its stream; `join`:
    the record that lines make."""

    def __init__(
        self, goes_on: Callable[[Line, Line], bool], join: Callable[[list[Line]], Raw]
    ) -> None:
        self._goes_on = goes_on
        self._join = join
        self._streams: OrderedDict[str, _Stream] = OrderedDict()
        self._queue: deque[_Record] = deque()
        self._current: _Record | None = None
        """Of the line before, if that is this slice's."""
        self._held = _HELD

    def records(
        self, lines: Iterable[Line | Rejected], start: int, end: int | None
    ) -> Iterator[Raw | Rejected]:
        """The records that begin in [start, end). `lines` begin WINDOW_BYTES before `start`."""
        before: int | None = None
        for line in lines:
            if isinstance(line, Rejected):
                if _is_in(line.position, start, end):
                    self._queue.append(_Record(rejected=line, done=True))
                continue
            position = line.raw.position
            self._forget(position)
            if end is not None and position >= end and not self._queue:
                return
            last = self._current
            if line.stream is not None:
                self._current = self._place(line, start, end)
            elif before is not None and position - before <= WINDOW_BYTES:
                self._current = self._add(last, line) if last else None
            else:
                # Before the slice it is unknown to what this belongs, but not to this slice.
                self._current = self._begin(line) if _is_in(position, start, end) else None
            if last and last is not self._current and not last.in_stream:
                last.done = True
            before = position
            yield from self._ready()
        for record in self._queue:
            record.done = True
        yield from self._ready()

    def _place(self, line: Line, start: int, end: int | None) -> _Record | None:
        """Put a line to its stream; its record, if that is this slice's."""
        stream = str(line.stream)
        known = self._streams.pop(stream, None)
        if known and self._goes_on(known.line, line):
            record = self._add(known.record, line) if known.record else None
        else:
            if known and known.record:
                known.record.done = True
            mine = _is_in(line.raw.position, start, end)
            record = self._begin(line) if mine else None
        if record:
            record.in_stream = True
        self._streams[stream] = _Stream(line, record)
        return record

    def _begin(self, line: Line) -> _Record:
        record = _Record([line], size=len(line.said))
        self._queue.append(record)
        return record

    def _add(self, record: _Record, line: Line) -> _Record:
        if record.size > PART_BYTES:
            record.done = True
            record = self._begin(line)
            record.part = True
        else:
            record.lines.append(line)
            record.size += len(line.said)
        return record

    def _forget(self, position: int) -> None:
        """Streams whose last line is too far away for another to go on with it."""
        while self._streams:
            name, stream = next(iter(self._streams.items()))
            if position - stream.line.raw.position <= WINDOW_BYTES:
                return
            del self._streams[name]
            if stream.record:
                stream.record.in_stream = False
                stream.record.done = stream.record is not self._current

    def _ready(self) -> Iterator[Raw | Rejected]:
        """Finished records in order; if very many wait for one that goes on, without it."""
        while self._queue and self._queue[0].done:
            yield self._made(self._queue.popleft())
        if len(self._queue) > self._held:
            waiting = list(self._queue)
            self._queue = deque(record for record in waiting if not record.done)
            self._held = max(_HELD, 2 * len(self._queue))
            yield from (self._made(record) for record in waiting if record.done)

    def _made(self, record: _Record) -> Raw | Rejected:
        if record.rejected:
            return record.rejected
        made = self._join(record.lines)
        return replace(made, flags=tuple(sorted({*made.flags, "part"}))) if record.part else made


def _is_in(position: int, start: int, end: int | None) -> bool:
    return position >= start and (end is None or position < end)
