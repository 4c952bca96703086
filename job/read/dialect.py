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
_REGULAR = 0.9
"""Share of rows with as many cells as the heading from which a text is a table."""
_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?%?")
_NAME = re.compile(r"[^\W\d][\w .\-/()%#:@&+]{0,39}")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Dialect:
    """`columns`: names of the cells, none twice; `heading`: whether the file's first row holds
    them; `quoted`: whether a quote at the start of a cell means anything (in a TSV with bare
    quotes it does not)."""

    delimiter: str
    quoted: bool
    columns: tuple[str, ...]
    heading: bool

    def reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The rows of lines (each with its line feed), as the csv module reads them."""
        return _reader(lines, self.delimiter, self.quoted)

    def alone(self, line: str) -> list[str] | None:
        """The cells of a line in which quotes mean nothing, if they are as many as the columns."""
        cells = next(_reader([line], self.delimiter, quoted=False), [])
        return cells if self.quoted and len(cells) == len(self.columns) else None


def is_table(extension: str) -> bool:
    """Whether a file's extension (lower case, with its dot) says that it is a table."""
    return extension in _DELIMITERS


def _reader(lines: Iterable[str], delimiter: str, quoted: bool) -> Iterator[list[str]]:
    if quoted:
        return csv.reader(lines, delimiter=delimiter)
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
    best: tuple[float, int, Dialect] | None = None
    for delimiter in _DELIMITERS.get(extension, ",\t;|"):
        quoted = _quotes_matter(text, delimiter, complete)
        rows = _rows(text, delimiter, quoted, complete)
        width = len(rows[0]) if rows else 0
        share = sum(len(row) == width for row in rows) / (len(rows) or 1)
        if width < 2 or (share < _REGULAR and not named):
            continue
        heading = _is_heading(rows, is_time)
        columns = unique(rows[0]) if heading else tuple(f"c{n}" for n in range(1, width + 1))
        if not named and not (
            heading
            and len(rows) > 2
            and width > (delimiter != "\t") + 1
            and all(_NAME.fullmatch(cell) for cell in rows[0])
        ):
            continue
        if best is None or (share, width) > best[:2]:
            best = share, width, Dialect(delimiter, quoted, columns, heading)
    if best is None and named:
        rows = _rows(text, ",", True, complete)
        heading = bool(rows) and _is_heading(rows, is_time)
        return Dialect(",", True, unique(rows[0][:1]) if heading else ("c1",), heading)
    return best[2] if best else None


def _rows(text: str, delimiter: str, quoted: bool, complete: bool) -> list[list[str]]:
    lines = (line.removesuffix("\r").replace("\r", " ") + "\n" for line in text.split("\n"))
    try:
        rows = list(islice(filter(None, _reader(lines, delimiter, quoted)), _SAMPLE_ROWS))
    except csv.Error:
        return []
    # The sample may end inside the last row.
    return rows[:-1] if len(rows) > 1 and len(rows) < _SAMPLE_ROWS and not complete else rows


def _quotes_matter(text: str, delimiter: str, complete: bool) -> bool:
    """Not where there are none and tabs part the cells, and not where every line has as many
    cells as the next but quotes, if minded, would join some of them."""
    if '"' not in text:
        return delimiter != "\t"
    widths = {len(row) for row in _rows(text, delimiter, False, complete)}
    minded = _rows(text, delimiter, True, complete)
    return len(widths) != 1 or not any("\n" in cell for row in minded for cell in row)


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
