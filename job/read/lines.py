"""Bytes in any chunks -> blocks of whole lines, cut where a slice of the file ends.

Invariant: a block holds whole lines (the last line of a file may lack its line feed); no block
holds both a line that starts before `end` and one that starts at or after it; which lines there
are, and which of them is too long, does not depend on how the bytes were chunked. Lines end at
`\\n`; the `\\r` before it is the reader's to take off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from job.read.encoding import Encoding

MAX_RECORD_BYTES = 64 << 20
"""A longer line or record is rejected, so that memory stays bounded whatever a file holds."""
_EXCERPT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines: `position` is the byte offset of the first, `stop` where the next one starts.
    A line above MAX_RECORD_BYTES is a block of its own, `too_long`, with only its beginning."""

    position: int
    stop: int
    data: bytes
    too_long: bool = False


def read_blocks(
    chunks: Iterable[bytes], position: int, encoding: Encoding, end: int | None, mid_line: bool
) -> Iterator[Block]:
    """Blocks of the lines in `chunks`, whose first byte lies at `position`.

    `mid_line`: the first byte belongs to a line that began before; it is passed over. Blocks go on
    past `end` for as long as they are asked for; None: the end of the file.
    """
    unit, newline = encoding.unit, encoding.newline
    buffer = bytearray()
    searched = 0
    passing, too_long = mid_line, None
    for chunk in chunks:
        buffer += chunk
        if passing:
            first = _find(buffer, newline)
            passed = len(buffer) - len(buffer) % unit if first < 0 else first + unit
            position += passed
            del buffer[:passed]
            if first < 0:
                continue
            passing = False
            if too_long:
                yield Block(too_long[0], position, too_long[1], too_long=True)
                too_long = None
        cut = _rfind(buffer, newline, searched) + unit
        if cut < unit:
            searched = len(buffer) - len(buffer) % unit
            if len(buffer) > MAX_RECORD_BYTES:
                passing, too_long = True, (position, bytes(buffer[:_EXCERPT_BYTES]))
                position += searched
                del buffer[:searched]
                searched = 0
            continue
        # Only the first line can be longer than a chunk.
        if cut > MAX_RECORD_BYTES and (first := _find(buffer, newline)) > MAX_RECORD_BYTES:
            start, position = position, position + first + unit
            yield Block(start, position, bytes(buffer[:_EXCERPT_BYTES]), too_long=True)
            del buffer[: first + unit]
            cut -= first + unit
        data = bytes(buffer[:cut])
        del buffer[:cut]
        searched = 0
        yield from _cut_at(end, position, data)
        position += cut
    if too_long:
        yield Block(too_long[0], position + len(buffer), too_long[1], too_long=True)
    elif buffer and not passing:
        yield from _cut_at(end, position, bytes(buffer))


def _cut_at(end: int | None, position: int, data: bytes) -> Iterator[Block]:
    stop = position + len(data)
    if end is not None and position < end < stop:
        # The first line that starts at or after `end` follows the line feed at or after end - 1.
        cut = data.find(b"\n", end - 1 - position) + 1
        if 0 < cut < len(data):
            yield Block(position, position + cut, data[:cut])
            position, data = position + cut, data[cut:]
    if data:
        yield Block(position, stop, data)


def _find(buffer: bytearray, newline: bytes) -> int:
    at = buffer.find(newline)
    while at % len(newline) and at >= 0:
        at = buffer.find(newline, at + 1)
    return at


def _rfind(buffer: bytearray, newline: bytes, searched: int) -> int:
    at = buffer.rfind(newline, searched)
    while at % len(newline) and at >= 0:
        at = buffer.rfind(newline, searched, at + len(newline) - 1)
    return at
