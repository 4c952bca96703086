"""The graph over all vectors of one owner, made where there are many, and kept on disk.

A folder holds `graph.usearch`, `vectors.npy` (the vectors, 16 bits, mapped), `rows.npy` (for each
row the number of its segment and its group there) and the `digest` of these. What came since is
compared one by one, until it is a tenth of the whole; then the graph is made anew.

Invariant: a folder of a graph never changes; it is searched through only for segments that are
still there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve.search.catalog import SavedGraph
from serve.search.mapped import array_of, mapped_in
from serve.search.nearest import Nearest, graph_of, open_graph
from serve.search.vectors import Half, Part

FEWEST = 50_000
"""Vectors of an owner below which there is no graph: all are compared in some 30 ms."""
STALE = 0.1
"""The share that may be missing in a graph, or be there in vain."""


def is_due(covered: int, missing: int, vain: int) -> bool:
    """Whether a graph that covers so many vectors has to be made anew. Pure."""
    wanted = covered - vain + missing
    return wanted >= FEWEST and missing + vain >= max(STALE * covered, FEWEST * STALE)


def write_graph(folder: Path, parts: Mapping[str, Part]) -> tuple[str, ...]:
    """Make the graph over the vectors of segments, by their names, in `folder`, which appears
    whole. Returns the names in the order of their numbers."""
    vectors = np.concatenate([part.vectors for part in parts.values()])
    rows = _rows(parts)
    hidden = folder.parent / f".{folder.name}.{uuid.uuid4().hex[:8]}.part"
    hidden.mkdir(parents=True)
    try:
        np.save(hidden / "vectors.npy", vectors, allow_pickle=False)
        np.save(hidden / "rows.npy", rows, allow_pickle=False)
        graph_of(vectors).save(str(hidden / "graph.usearch"))
        (hidden / "digest").write_text(_digest(hidden))
        os.rename(hidden, folder)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return tuple(parts)


def _digest(folder: Path) -> str:
    """Of the files in a folder: 2 s for a million vectors."""
    state = hashlib.blake2b()
    for name in ("graph.usearch", "vectors.npy", "rows.npy"):
        with (folder / name).open("rb") as file:
            state.update(hashlib.file_digest(file, "blake2b").digest())
    return state.hexdigest()


class Graph:
    """A graph that was saved, mapped. Raises one of READ_ERRORS where it cannot be."""

    def __init__(self, folder: Path, saved: SavedGraph) -> None:
        self.saved = saved
        self.mapped = mapped_in(folder)
        self._rows: NDArray[np.int32] = np.load(folder / "rows.npy", allow_pickle=False)
        self._vectors: Half = array_of(folder / "vectors.npy")
        # usearch trusts what is in the file, and ends the process where that is something else.
        if (folder / "digest").read_text(errors="replace") != _digest(folder):
            raise ValueError(f"{folder}: the graph is not what was written")
        self._graph: Any = open_graph(folder / "graph.usearch")
        rows = self._rows
        if rows.ndim != 2 or not len(rows) == len(self._vectors) == len(self._graph):
            raise ValueError(f"{folder}: its files do not belong together")
        if rows.min() < 0 or rows[:, 0].max() >= len(saved.segments):
            raise ValueError(f"{folder}: it names segments that are not there")

    @property
    def covered(self) -> dict[str, int]:
        """How many vectors of each segment it has."""
        counts = np.bincount(self._rows[:, 0], minlength=len(self.saved.segments))
        return dict(zip(self.saved.segments, counts.tolist(), strict=True))

    def nearest(self, offsets: Mapping[str, int]) -> Nearest:
        """What is searched of it. `offsets`: the key of the first group of each segment; those that
        are not named are not there any more."""
        keys = _keys(self.saved.segments, self._rows, offsets)
        return Nearest(keys, self._vectors, self._graph)


@dataclass(frozen=True, slots=True)
class Loose:
    """Vectors that are in no graph. `rows`: as of a graph."""

    segments: tuple[str, ...]
    rows: NDArray[np.int32]
    vectors: Half

    def nearest(self, offsets: Mapping[str, int]) -> Nearest:
        """See `Graph.nearest`."""
        return Nearest(_keys(self.segments, self.rows, offsets), self.vectors)


def _keys(
    segments: Sequence[str], rows: NDArray[np.int32], offsets: Mapping[str, int]
) -> NDArray[np.int64]:
    first = np.array([offsets.get(name, -1) for name in segments], dtype=np.int64)
    begins = first[rows[:, 0]]
    return np.where(begins < 0, -1, begins + rows[:, 1])


def loose(parts: Mapping[str, Part]) -> Loose | None:
    """The vectors of segments, by their names; None: there are none."""
    if not parts:
        return None
    vectors = np.concatenate([part.vectors for part in parts.values()])
    return Loose(tuple(parts), _rows(parts), vectors)


def _rows(parts: Mapping[str, Part]) -> NDArray[np.int32]:
    return np.concatenate(
        [
            np.stack([np.full(len(part.groups), number, np.int32), part.groups], axis=1)
            for number, part in enumerate(parts.values())
        ]
    )
