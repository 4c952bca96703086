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
from job.read.streams import ByteStream, Compression, Location
from job.read.tabular import read_csv
from job.read.text_log import read_text
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
    mid_line = part.index > 0
    stream = ByteStream(part.location, part.compression, part.start - mid_line, part.end)
    try:
        yield from _records(part, stream, mid_line)
    except OSError as error:
        if not part.location.is_lasting(error):
            raise
        yield unreadable(part.source, part.start, error)
    if stream.damage:
        yield truncated(part.source, stream.received, stream.damage)


def _records(part: Slice, stream: ByteStream, mid_line: bool) -> Iterator[Raw | Rejected]:
    source, encoding, form = part.source, part.encoding, part.format
    bom = 0 if mid_line else encoding.bom
    chunks = _after(bom, stream)
    position = part.start - mid_line + bom
    if form.name == "json":
        yield from read_json(chunks, position, source, encoding, form.path)
        return
    blocks = read_blocks(chunks, position, encoding, part.end, mid_line)
    if form.name == "jsonl":
        yield from read_json_lines(blocks, source, encoding, part.end)
    elif form.dialect:
        heading = form.dialect.heading and not mid_line
        yield from read_csv(blocks, source, encoding, part.end, form.dialect, heading)
    else:
        mixed = form.name in ("mixed", "logfmt")
        text_log = read_text(
            blocks,
            source,
            encoding,
            part.end,
            timed=form.timed,
            mixed=mixed,
            from_start=not mid_line,
        )
        yield from text_log


def _after(count: int, chunks: Iterator[bytes] | ByteStream) -> Iterator[bytes]:
    """The bytes after the first `count`."""
    for chunk in chunks:
        if rest := chunk[count:]:
            yield rest
        count = max(count - len(chunk), 0)
