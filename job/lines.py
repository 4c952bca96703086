"""Byte positions -> line numbers, for the evidence that is shown.

Invariant: a line number is only given for a file that still has the size it had when it was read;
otherwise None. Each file is read at most once per finder, to the furthest position asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK_BYTES = 2**20
"""Between two remembered line counts."""


@dataclass(slots=True)
class _File:
    path: Path
    before: list[int] = field(default_factory=lambda: [0])
    """Line ends before each block."""

    def line_at(self, position: int) -> int:
        block = position // BLOCK_BYTES
        with self.path.open("rb") as file:
            while len(self.before) <= block:
                file.seek((len(self.before) - 1) * BLOCK_BYTES)
                self.before.append(self.before[-1] + file.read(BLOCK_BYTES).count(b"\n"))
            file.seek(block * BLOCK_BYTES)
            inside = file.read(position - block * BLOCK_BYTES).count(b"\n")
        return self.before[block] + inside + 1


class LineFinder:
    """Finds lines in the inputs of a run, as `run.json` lists them."""

    def __init__(self, inputs: Sequence[Mapping[str, Any]]) -> None:
        self._files: dict[str, _File | None] = {}
        for each in inputs:
            path = Path(each["path"])
            same = path.is_file() and path.stat().st_size == each["size"]
            plain = each.get("compression") is None
            self._files[each["source"]] = _File(path) if same and plain else None

    def __call__(self, source: str, position: int) -> int | None:
        """The 1-based line at `position` of `source`; None where it cannot be known."""
        file = self._files.get(source)
        try:
            return None if file is None else file.line_at(position)
        except OSError:
            return None
