"""Byte positions -> line numbers, for the evidence that is shown.

Invariant: a line number is only given for a file that still has the size it had when it was read;
otherwise None. Each file is read at most once per finder, to the furthest position asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from job.storage.place import Place

BLOCK_BYTES = 2**20
"""Between two remembered line counts."""


@dataclass(slots=True)
class _File:
    place: Place
    before: list[int] = field(default_factory=lambda: [0])
    """Line ends before each block."""
    ends: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Where lines end in the blocks that were asked for."""

    def line_at(self, position: int) -> int:
        block, offset = divmod(position, BLOCK_BYTES)
        if block not in self.ends:
            self._read(block)
        return self.before[block] + int(np.searchsorted(self.ends[block], offset)) + 1

    def _read(self, block: int) -> None:
        with self.place.open() as file:
            file.seek((len(self.before) - 1) * BLOCK_BYTES)
            while len(self.before) <= block:
                self.before.append(self.before[-1] + file.read(BLOCK_BYTES).count(b"\n"))
            file.seek(block * BLOCK_BYTES)
            data = np.frombuffer(file.read(BLOCK_BYTES), np.uint8)
        self.ends[block] = np.flatnonzero(data == ord("\n"))


class LineFinder:
    """Finds lines in the inputs of a run, as `run.json` lists them."""

    def __init__(self, inputs: Sequence[Mapping[str, Any]]) -> None:
        self._inputs = {each["source"]: each for each in inputs}
        self._files: dict[str, _File | None] = {}

    def __call__(self, source: str, position: int) -> int | None:
        """The 1-based line at `position` of `source`; None where it cannot be known."""
        try:
            if source not in self._files:
                self._files[source] = _open(self._inputs.get(source))
            file = self._files[source]
            return None if file is None else file.line_at(position)
        except OSError:
            return None


def _open(known: Mapping[str, Any] | None) -> _File | None:
    """An input in which lines can be counted; None for one that is compressed or has changed."""
    if known is None or known.get("compression") is not None:
        return None
    place = Place.of(known["path"])
    look = place.look()
    same = look.type == fs.FileType.File and look.size == known["size"]
    return _File(place) if same else None
