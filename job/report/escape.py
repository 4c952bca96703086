"""Text for Markdown that stays text.

Invariant: what is escaped here cannot become markup, a link, a mention or a control sequence, in a
terminal or on a code host, and takes one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

_MARKUP = re.compile(r"([\\`*_\[\]<>|~#!&$])")
_LINK = re.compile(r"(?<=[A-Za-z]):(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORD_JOINER = "\u2060"


def prose(text: str) -> str:
    """`text` as one line that reads as written, whatever it holds."""
    line = _MARKUP.sub(r"\\\1", _one_line(text))
    line = _LINK.sub(lambda match: "\\" + match[0], line)
    # A mention notifies people, and no escape stops it; the joiner is not seen.
    line = line.replace("@", "@" + _WORD_JOINER)
    return _LIST.sub(lambda match: rf"{match[1]}\{match[2]}" if match[1] else rf"\{match[3]}", line)


def code(text: str) -> str:
    """`text` as a code span on one line."""
    line = _one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: its first column text, already escaped, the others numbers, to the right. Columns
    are aligned by what a terminal shows, where a Chinese character is two cells wide."""
    lines = [list(head), *([_shown(value) for value in row] for row in rows)]
    widths = [max(3, *map(cell_len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if n == 0 else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    padded = [
        [_pad(cell, width, n) for n, (cell, width) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    ]
    padded.insert(1, rule)
    return "\n".join("| " + " | ".join(line) + " |" for line in padded)


def code_cell(text: str) -> str:
    """`text` as a code span in a table, where a bar would end the cell."""
    return code(text).replace("|", "\\|")


def _pad(cell: str, width: int, column: int) -> str:
    room = " " * (width - cell_len(cell))
    return cell + room if column == 0 else room + cell


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _one_line(text: str) -> str:
    """White space as single spaces, control and direction marks made visible as U+FFFD."""
    return _CONTROL.sub("\ufffd", " ".join(text.split()))
