"""What a table in a text file looks like: delimiter, quoting, names of the columns, and the places
where the file may be cut.

Invariant: a cut is where a row starts. The scan that finds cuts accepts a file only if every quote
in it opens a cell, closes one or is doubled; then, and only then, the count of quotes before a
place tells whether it lies inside a quoted cell.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t,;|", ".tab": "\t,;|", ".psv": "|,;\t"}
_SAMPLE_ROWS = 500
_SAMPLE_CHARACTERS = 1 << 18
_REGULAR = 0.9
"""Share of rows with as many cells as the heading from which a text is a table."""
_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?%?")
_NAME = re.compile(r"[^\W\d][\w .\-/()%#:@&+]{0,39}")
_LONGEST_NAME = 80
_MOST_ABOVE = 10


@dataclass(frozen=True, slots=True)
class Dialect:
    """`columns`: names of the cells, none twice; `heading`: whether the file's first row holds
    them; `quoted`: whether a quote at the start of a cell means anything (in a TSV with bare
    quotes it does not); `before`: rows above the heading (a title, Excel's `sep=;`)."""

    delimiter: str
    quoted: bool
    columns: tuple[str, ...]
    heading: bool
    before: int = 0

    def reader(self, lines: Iterable[str], strict: bool = False) -> Iterator[list[str]]:
        """The rows of lines (each with its line feed), as the csv module reads them. `strict`: it
        raises csv.Error for a quote that neither opens a cell, closes one nor is doubled."""
        return _reader(lines, self.delimiter, self.quoted, strict)

    def alone(self, line: str) -> list[str] | None:
        """The cells of a line in which quotes mean nothing, if they are as many as the columns."""
        cells = next(_reader([line], self.delimiter, quoted=False), [])
        return cells if self.quoted and len(cells) == len(self.columns) else None


def heading_length(text: str, dialect: Dialect) -> int:
    """Characters of a text up to the end of its heading; 0 where it has none."""
    passed = 0

    def lines() -> Iterator[str]:
        nonlocal passed
        for line in _lines(text):
            passed += len(line)
            yield line

    if dialect.heading:
        above = dialect.before
        for row in dialect.reader(lines()):
            if is_row(row):
                above -= 1
                if above < 0:
                    return passed
    return 0


def is_row(cells: list[str]) -> bool:
    """Whether the csv module's cells are more than a blank line."""
    return len(cells) > 1 or bool(cells and cells[0].strip())


def is_table(extension: str) -> bool:
    """Whether a file's extension (lower case, with its dot) says that it is a table."""
    return extension in _DELIMITERS


def _reader(
    lines: Iterable[str], delimiter: str, quoted: bool, strict: bool = False
) -> Iterator[list[str]]:
    if quoted:
        return csv.reader(lines, delimiter=delimiter, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Column names with a number after those that came before, and in place of empty ones."""
    made: list[str] = []
    for place, name in enumerate(names, 1):
        wanted = base = name.strip() or f"c{place}"
        count = 1
        while wanted in made:
            count += 1
            wanted = f"{base}_{count}"
        made.append(wanted)
    return tuple(made)


def find_dialect(
    text: str, complete: bool, extension: str, is_time: Callable[[str], bool]
) -> Dialect | None:
    """The dialect of a text of whole lines, or None where it is no table.

    `complete`: the text is the whole file. `extension`: lower case with its dot; a file that is
    not named as a table must have a heading and three columns (two where tabs part them).
    """
    named = extension in _DELIMITERS
    # Lines that end at a carriage return alone are none here: the first would hold the whole file.
    lone_return = "\r" in text.partition("\n")[0].removesuffix("\r")
    if len(text) > _SAMPLE_CHARACTERS:
        text = text[: text.rfind("\n", 0, _SAMPLE_CHARACTERS) + 1] or text
        complete = False
    best: tuple[float, int, Dialect] | None = None
    for delimiter in _DELIMITERS.get(extension, ",\t;|"):
        quoted = _quotes_matter(text, delimiter, complete)
        rows = _rows(text, delimiter, quoted, complete)
        before = _above_heading(rows, is_time) if named else 0
        rows = rows[before:]
        width = len(rows[0]) if rows else 0
        share = _evenness(rows)
        if width < 2 or (share < _REGULAR and not named):
            continue
        heading = not lone_return and _is_heading(rows, is_time)
        columns = unique(rows[0]) if heading else tuple(f"c{n}" for n in range(1, width + 1))
        if not named and not (
            heading
            and len(rows) > 2
            and width > (delimiter != "\t") + 1
            and all(_NAME.fullmatch(cell) for cell in rows[0])
        ):
            continue
        if best is None or (share, width) > best[:2]:
            best = share, width, Dialect(delimiter, quoted, columns, heading, before)
    if best is None and named:
        rows = _rows(text, ",", True, complete)
        heading = bool(rows) and not lone_return and _is_heading(rows, is_time)
        return Dialect(",", True, unique(rows[0][:1]) if heading else ("c1",), heading)
    return best[2] if best else None


def _rows(text: str, delimiter: str, quoted: bool, complete: bool) -> list[list[str]]:
    try:
        rows = list(islice(filter(is_row, _reader(_lines(text), delimiter, quoted)), _SAMPLE_ROWS))
    except csv.Error:
        return []
    # The sample may end inside the last row.
    return rows[:-1] if len(rows) > 1 and len(rows) < _SAMPLE_ROWS and not complete else rows


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, without the carriage returns that would end a row early."""
    return (line.replace("\r", " ") + "\n" for line in text.split("\n"))


def _quotes_matter(text: str, delimiter: str, complete: bool) -> bool:
    """Whether quotes enclose cells. Where none of them joins lines that question is idle. Where
    tabs part the cells, quotes are meant if rows are more even with them; elsewhere, if most of
    them are those of enclosed cells."""
    if '"' not in text:
        return delimiter != "\t"
    minded = _rows(text, delimiter, True, complete)
    if not any("\n" in cell for row in minded for cell in row):
        return True
    if delimiter == "\t":
        return _evenness(minded) > _evenness(_rows(text, delimiter, False, complete))
    part = re.escape(delimiter)
    enclosed = re.findall(rf'(?:^|(?<=[{part}\n]))"(?:[^"]|"")*+"(?=[{part}\r\n]|\Z)', text)
    return 2 * "".join(enclosed).count('"') >= text.count('"')


def _above_heading(rows: list[list[str]], is_time: Callable[[str], bool]) -> int:
    """How many rows of one filled cell stand above the heading of a table with more columns."""
    filled = (sum(bool(cell.strip()) for cell in row) for row in rows)
    above = next((number for number, count in enumerate(filled) if count > 1), 0)
    rest = rows[above:]
    meant = 0 < above <= _MOST_ABOVE and len(rest) > 1 and _evenness(rest) >= _REGULAR
    return above if meant and _is_heading(rest, is_time) else 0


def _evenness(rows: list[list[str]]) -> float:
    """The share of rows that have as many cells as the first."""
    return sum(len(row) == len(rows[0]) for row in rows) / len(rows) if rows else 0.0


def _is_heading(rows: list[list[str]], is_time: Callable[[str], bool]) -> bool:
    """Whether the first row names the columns: none of its cells is a number, a time or a long
    text, and only the first may be empty (tables written with their index have that)."""
    first = rows[0]
    return (
        any(cell.strip() for cell in first)
        and all(cell.strip() for cell in first[1:] if len(first) > 1)
        and not any(
            len(cell) > _LONGEST_NAME or _NUMBER.fullmatch(cell.strip()) or is_time(cell)
            for cell in first
        )
    )


def row_cuts(chunks: Iterable[bytes], position: int, delimiter: str, slice_bytes: int) -> list[int]:
    """Byte offsets of row starts about `slice_bytes` apart in a table whose first byte lies at
    `position`, or none where its quotes do not allow to tell. Encodings of the UTF-8 kind only."""
    may_open = np.zeros(256, bool)
    may_open[[ord(delimiter), ord("\n"), ord('"')]] = True
    may_close = may_open.copy()
    may_close[ord("\r")] = True
    cuts: list[int] = []
    target = position + slice_bytes
    inside = 0
    # A line feed stands for the beginning and the end of the file; the byte before each quote
    # and the one after it must be known, so the last byte waits for the next chunk.
    window = b"\n"
    for chunk in chain(chunks, [b"\n"]):
        window += chunk
        data = np.frombuffer(window, np.uint8)
        quotes = np.flatnonzero(data[1:-1] == ord('"')) + 1
        opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
        if not (may_open[data[opening - 1]].all() and may_close[data[closing + 1]].all()):
            return []
        while (at := max(target - position, 1)) < len(data) - 1:
            feeds = np.flatnonzero(data[at:-1] == ord("\n")) + at
            outside = feeds[(inside + np.searchsorted(quotes, feeds)) % 2 == 0]
            if not len(outside):
                break
            cuts.append(position + int(outside[0]))
            target = cuts[-1] + slice_bytes
        inside = (inside + len(quotes)) % 2
        position += len(data) - 2
        window = window[-2:]
    return [] if inside else cuts
