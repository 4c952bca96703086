"""A slice of a file -> its raw records and rejections, streamed.

Invariant: the slices of a file together give exactly what one slice of the whole file would; memory
is bounded by the largest record and a few chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from job.read.encoding import Encoding
from job.read.formats import Format
from job.read.json_lines import read_json_lines
from job.read.json_stream import read_json
from job.read.lines import read_blocks
from job.read.rejections import binary, truncated, unreadable
from job.read.repeats import each, may_repeat
from job.read.streams import ByteStream, Compression, Location
from job.read.tabular import read_csv
from job.read.text_log import TextLog
from job.records import Raw, Rejected


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a file and all that is needed to read it; plain values that can be pickled.

    It holds the records that start in [start, end), byte offsets in the file; `end` is None where
    the whole file is one stream to its end, and `start` is then 0. `size`: bytes on disk that the
    slice stands for. `index`: its place among the slices of its file.
    """

    source: str
    location: Location
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
    # One byte before, to see whether a line begins right at the start.
    begin = part.start - 1 if part.index else 0
    stream = ByteStream(part.location, part.compression, begin, part.end)
    try:
        for row in _records(part, stream, begin):
            if type(row) is Raw and may_repeat(row):
                yield from each(row)
            else:
                yield row
    except OSError as error:
        if not part.location.is_lasting(error):
            raise
        yield unreadable(part.source, part.start, error)
    if stream.damage:
        yield truncated(part.source, begin + stream.received, stream.damage)


def _records(part: Slice, stream: ByteStream, begin: int) -> Iterator[Raw | Rejected]:
    source, encoding, end, form = part.source, part.encoding, part.end, part.format
    first = part.index == 0
    bom = encoding.bom if first else 0
    chunks = _after(bom, stream)
    if form.name == "json":
        yield from read_json(chunks, begin + bom, source, encoding, form.path)
        return
    blocks = read_blocks(chunks, begin + bom, encoding, end, mid_line=not first)
    if form.name == "jsonl":
        yield from read_json_lines(blocks, source, encoding, end)
    elif form.dialect:
        heading = first and form.dialect.heading
        yield from read_csv(blocks, source, encoding, end, form.dialect, heading)
    else:
        log = TextLog(source, encoding, form.timed, mixed=form.name in ("mixed", "logfmt"))
        yield from log.records(blocks, end, from_start=first)


def _after(count: int, chunks: Iterator[bytes] | ByteStream) -> Iterator[bytes]:
    """The bytes after the first `count`."""
    for chunk in chunks:
        if rest := chunk[count:]:
            yield rest
        count = max(count - len(chunk), 0)
