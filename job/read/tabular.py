"""CSV and its relatives -> one raw record per row.

Invariant: no row is lost to a stray quote: where a quote that never closes would swallow the lines
behind it, its line is read as it stands and the others are read anew.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from job.read.dialect import Dialect, is_row, unique
from job.read.encoding import Encoding, repair
from job.read.lines import MAX_RECORD_BYTES, Block
from job.read.rejections import above_heading, bad_csv, too_long
from job.records import Raw, Rejected

csv.field_size_limit(MAX_RECORD_BYTES)

_LONE_RETURN = "\ufdd0"
"""A noncharacter in place of a carriage return inside a line, which the csv module would take for
the end of a row."""
_LINE_OVERHEAD = 100
"""Bytes it takes to keep a line of an unfinished row besides its text."""


class _RowTooLong(Exception):
    """A row of more than MAX_RECORD_BYTES."""


class _Lines:
    """The lines the csv module asks for. `row` are those of the current row with their byte
    offsets, so that they can be given back; `odd` tells that one of the lines so far may hold
    something to mend."""

    def __init__(self, blocks: Iterable[Block], encoding: Encoding, end: int | None) -> None:
        self._blocks = iter(blocks)
        self._encoding = encoding
        self._end = end
        self._ended = False
        self._waiting: Iterator[tuple[int, str]] = iter(())
        self._given_back: list[tuple[int, str]] = []
        self._size = 0
        self.row: list[tuple[int, str]] = []
        self.too_long: list[Block] = []
        self.odd = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._given_back:
            line = self._given_back.pop()
        else:
            while (line := next(self._waiting, (-1, "")))[0] < 0:
                self._next_block()
        self.row.append(line)
        self._size += len(line[1]) + _LINE_OVERHEAD
        if self._size > MAX_RECORD_BYTES:
            raise _RowTooLong
        return line[1]

    def begin_row(self) -> None:
        self.row = []
        self._size = 0

    def give_back(self, lines: list[tuple[int, str]]) -> None:
        self._given_back += reversed(lines)

    def _next_block(self) -> None:
        if self._ended or (block := next(self._blocks, None)) is None:
            raise StopIteration
        if self._end is not None:
            if block.position >= self._end:
                raise StopIteration
            self._ended = block.stop >= self._end
        if block.too_long:
            self.too_long.append(block)
            return
        text, bad = self._encoding.decode(block.data)
        self.odd |= bad or "\0" in text or "\r" in text.replace("\r\n", "")
        self._waiting = self._positioned(text, block)

    def _positioned(self, text: str, block: Block) -> Iterator[tuple[int, str]]:
        position, unit = block.position, self._encoding.unit
        one_byte = len(text) == len(block.data)
        for line in text.removesuffix("\n").split("\n"):
            size = len(line) if one_byte else self._encoding.byte_length(line)
            shown = line.removesuffix("\r")
            if "\r" in shown:
                shown = shown.replace("\r", _LONE_RETURN)
            yield position, shown + "\n"
            position += size + unit


class _Rows:
    """The rows of lines, read strictly as long as their quotes allow it."""

    def __init__(self, lines: _Lines, dialect: Dialect) -> None:
        self._lines = lines
        self._dialect = dialect
        self._strict = dialect.reader(lines, strict=True)
        self._lenient = dialect.reader(lines)

    def next(self, flags: list[str]) -> list[str] | Exception:
        """The cells of the next row, or why it has none. Behind the last row there are neither
        cells nor lines."""
        self._lines.begin_row()
        cells = self._read(self._strict)
        stray = isinstance(cells, csv.Error)
        if stray:
            self._lines.give_back(self._lines.row)
            self._lines.begin_row()
            cells = self._read(self._lenient)
        row = self._lines.row
        if len(row) > 1 and (stray or not self._fits(cells)):
            alone = self._dialect.alone(row[0][1])
            if alone:
                self._lines.give_back(row[1:])
                flags.append("bare_quote")
                return alone
        return cells

    def _read(self, rows: Iterator[list[str]]) -> list[str] | Exception:
        try:
            return next(rows, [])
        except (csv.Error, _RowTooLong) as error:
            return error

    def _fits(self, cells: list[str] | Exception) -> bool:
        return isinstance(cells, list) and len(cells) == len(self._dialect.columns)


def read_csv(
    blocks: Iterable[Block],
    source: str,
    encoding: Encoding,
    end: int | None,
    dialect: Dialect,
    heading: bool,
) -> Iterator[Raw | Rejected]:
    """The records of the rows that start before `end` (a byte offset that is the start of a row;
    None: all of them). `heading`: the first row is the heading and no record, nor are those that
    the dialect has before it."""
    lines = _Lines(blocks, encoding, end)
    rows = _Rows(lines, dialect)
    above = dialect.before if heading else 0
    extra = unique([*dialect.columns, "extra"])[-1]
    while True:
        flags: list[str] = []
        cells = rows.next(flags)
        while lines.too_long:
            block = lines.too_long.pop()
            yield too_long(source, block.position, encoding.decode(block.data)[0])
        if not lines.row:
            return
        position, first = lines.row[0]
        if isinstance(cells, csv.Error):
            yield bad_csv(source, position, cells, first)
        elif isinstance(cells, Exception):
            yield too_long(source, position, first)
        elif is_row(cells) and above:
            above -= 1
            yield above_heading(source, position, first)
        elif is_row(cells) and heading:
            heading = False
        elif is_row(cells):
            if lines.odd:
                cells = _mended(cells, encoding, flags)
            value = _named(cells, dialect.columns, extra, flags)
            yield Raw(source, position, value, "csv", tuple(sorted(flags)))


def _named(
    cells: list[str], columns: tuple[str, ...], extra: str, flags: list[str]
) -> dict[str, Any]:
    value: dict[str, Any] = dict(zip(columns, cells, strict=False))
    if len(cells) > len(columns):
        value[extra] = cells[len(columns) :]
        flags.append("extra_cells")
    elif len(cells) < len(columns):
        value |= dict.fromkeys(columns[len(cells) :])
        flags.append("missing_cells")
    return value


def _mended(cells: list[str], encoding: Encoding, flags: list[str]) -> list[str]:
    """The cells as valid Unicode with their carriage returns, and flags for what was odd."""
    together = "".join(cells)
    if encoding.holds_bad_bytes(together):
        flags.append("bad_bytes")
    if "\0" in together:
        flags.append("nul")
    return [repair(cell).replace(_LONE_RETURN, "\r") for cell in cells]
