"""A slice of a file -> its raw records and rejections, streamed.

Invariant: the slices of a file together give exactly what one slice of the whole file would; memory
is bounded by the largest record and a few chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from job.read.chats import goes_on, join_messages, message_lines
from job.read.containers import Continuing, docker_lines, join_lines, prefixed_lines
from job.read.encoding import Encoding
from job.read.formats import Format
from job.read.json_lines import read_json_lines
from job.read.json_stream import read_json
from job.read.lines import Block, read_blocks
from job.read.rejections import binary, truncated, unreadable
from job.read.repeats import with_repeats
from job.read.streams import ByteStream, Compression
from job.read.tabular import read_csv
from job.read.text_log import TextLog
from job.read.weave import WINDOW_BYTES, Weave
from job.records import Raw, Rejected
from job.storage.place import Place


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a file and all that is needed to read it; plain values that can be pickled.

    It holds the records that start in [start, end), byte offsets in the file; `end` is None where
    the whole file is one stream to its end, and `start` is then 0. `size`: bytes on disk that the
    slice stands for. `index`: its place among the slices of its file.
    """

    source: str
    location: Place
    index: int
    start: int
    end: int | None
    size: int
    compression: Compression
    encoding: Encoding
    format: Format


def read_slice(part: Slice) -> Iterator[Raw | Rejected]:
    """The records of a slice in the order of their positions. What a file lost since it was
    planned, or never gave, is a rejection; a failing network raises OSError, as it can be tried
    again."""
    if part.format.name == "binary":
        yield binary(part.source)
        return
    woven = part.format.woven is not None and part.format.dialect is None
    # One byte before, to see whether a line begins right at the start; the streams of woven lines
    # are known from further back.
    begin = max(part.start - 1 - (WINDOW_BYTES if woven else 0), 0) if part.index else 0
    stream = ByteStream(part.location, part.compression, begin, part.end)
    try:
        yield from with_repeats(_records(part, stream, begin))
    except OSError as error:
        if not part.location.is_lasting(error):
            raise
        yield unreadable(part.source, part.start, error)
    if stream.damage:
        yield truncated(part.source, begin + stream.received, stream.damage)


def _records(part: Slice, stream: ByteStream, begin: int) -> Iterator[Raw | Rejected]:
    source, encoding, form = part.source, part.encoding, part.format
    if form.woven is None:
        yield from _rows(part, stream, begin, part.end)
        return
    # Which rows belong to this slice is the weave's to say.
    if form.woven == "chat":
        rows = _rows(part, stream, begin, part.end if form.dialect else None)
        lines = message_lines(rows, form.chat_names)
        weave = Weave(goes_on, partial(join_messages, names=form.chat_names))
    else:
        weave = Weave(Continuing(frozenset(form.timed_streams), form.woven == "tagged"), join_lines)
        if form.woven == "docker":
            lines = docker_lines(_rows(part, stream, begin, None))
        else:
            lines = prefixed_lines(_blocks(part, stream, begin, None), source, encoding, form.woven)
    yield from weave.records(lines, part.start, part.end)


def _rows(part: Slice, stream: ByteStream, begin: int, end: int | None) -> Iterator[Raw | Rejected]:
    """The rows that start before `end`, as the format has them."""
    source, encoding, form = part.source, part.encoding, part.format
    first = _is_first(part, begin)
    if form.name == "json":
        bom = encoding.bom
        yield from read_json(_after(bom, stream), bom, source, encoding, form.path)
        return
    blocks = _blocks(part, stream, begin, end)
    if form.name == "jsonl":
        yield from read_json_lines(blocks, source, encoding, end)
    elif form.dialect:
        heading = first and form.dialect.heading
        yield from read_csv(blocks, source, encoding, end, form.dialect, heading)
    else:
        log = TextLog(source, encoding, form.timed, mixed=form.name in ("mixed", "logfmt"))
        yield from log.records(blocks, end, from_start=first)


def _blocks(part: Slice, stream: ByteStream, begin: int, end: int | None) -> Iterator[Block]:
    first = _is_first(part, begin)
    bom = part.encoding.bom if first else 0
    return read_blocks(_after(bom, stream), begin + bom, part.encoding, end, mid_line=not first)


def _is_first(part: Slice, begin: int) -> bool:
    """Whether reading begins where the file does: in its first slice, or looking back so far."""
    return part.index == 0 or (begin == 0 and part.format.woven is not None)


def _after(count: int, chunks: Iterator[bytes] | ByteStream) -> Iterator[bytes]:
    """The bytes after the first `count`."""
    for chunk in chunks:
        if rest := chunk[count:]:
            yield rest
        count = max(count - len(chunk), 0)
