"""Which vectors are nearest to another, among those that a filter lets pass.

Few vectors are all compared. Many are in a graph of usearch (HNSW) in 8 bits, which names
candidates; those are compared by the vectors themselves. Where a filter lets few of them pass, the
graph would have to name most of what it has: those that pass are all compared instead.

Invariant: what is found passes the filter, the nearest first, and if less is found than was asked
for, no more passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve.search.vectors import Half

CONNECTIVITY, EXPANSION_ADD = 16, 128
"""Of a million vectors in 2,000 clusters, a graph built with usearch's usual 128 finds 0.997 of the
nearest ten; with 64 it is built in three quarters of the time and finds 0.96, however many
candidates it names: some clusters cannot be reached."""
EXPANSION = 192
"""Candidates the graph keeps in view. On clustered vectors recall is measured by `scripts/bench
search`."""
CANDIDATES = 4
"""Named for each vector that is wanted: 8 bits put one in eight of the nearest ten elsewhere, and
next to none beyond 50."""
LEAST_CANDIDATES = 256
"""Named in any case: a question is not as near to what it asks for as two texts of a kind are."""
SELECTIVE = 0.03
"""The share of vectors that pass a filter below which those are compared one by one."""
AT_ONCE = 32_768
"""Vectors compared at a time: 25 MB of 384 dimensions."""

Keys = NDArray[np.int64]
Found = tuple[Keys, NDArray[np.float32]]


def graph_of(vectors: Half) -> Any:
    """A graph of vectors of length 1, by their rows."""
    from usearch.index import Index

    graph = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION,
    )
    graph.add(np.arange(len(vectors), dtype=np.uint64), vectors)
    return graph


def open_graph(file: Path) -> Any:
    """A graph that was saved, mapped into memory."""
    from usearch.index import Index

    graph = Index.restore(str(file), view=True)
    if graph is None:
        raise ValueError(f"{file} is no graph")
    graph.expansion_search = EXPANSION
    return graph


@dataclass(frozen=True, slots=True)
class Nearest:
    """Vectors of length 1 by their keys; a row whose key is negative is not there. `graph`: of the
    same rows, None: there are too few for one."""

    keys: Keys
    vectors: Half
    graph: Any = None

    def search(self, vector: Half, most: int, passes: NDArray[np.bool_] | None) -> Found:
        """At most `most` keys with their cosines. `passes`: by key, whether it may be found."""
        there = self.keys >= 0
        if passes is not None:
            there &= passes[self.keys]
        count = int(there.sum())
        if self.graph is None or count <= max(SELECTIVE * len(self.keys), AT_ONCE):
            return self._exact(vector, most, np.flatnonzero(there))
        wanted = max(CANDIDATES * most, LEAST_CANDIDATES) * len(self.keys) // count
        found = self.graph.search(vector, min(wanted, len(self.keys)))
        rows = found.keys.astype(np.int64)
        rows = rows[there[rows]]
        if len(rows) < most:
            return self._exact(vector, most, np.flatnonzero(there))
        kept, cosines = compare(self.vectors[rows], vector, most)
        return self._best(rows[kept], cosines, most)

    def _exact(self, vector: Half, most: int, rows: NDArray[np.int64]) -> Found:
        """By comparing all of `rows`."""
        found: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            kept, cosines = compare(self.vectors[some], vector, most)
            found.append((some[kept], cosines))
        if not found:
            return self.keys[:0], np.empty(0, dtype=np.float32)
        return self._best(
            np.concatenate([kept for kept, _ in found]),
            np.concatenate([cosines for _, cosines in found]),
            most,
        )

    def _best(self, rows: NDArray[np.int64], cosines: NDArray[np.float32], most: int) -> Found:
        order = np.lexsort((rows, -cosines))[:most]
        return self.keys[rows[order]], cosines[order]


def compare(
    vectors: Half, vector: Half, most: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The rows of `vectors` that are nearest to `vector`, at most `most`, with their cosines: of
    all of them, and by usearch's 16-bit arithmetic, six times as fast as NumPy's."""
    from usearch.index import MetricKind, search

    found = search(vectors, vector, min(most, len(vectors)), MetricKind.IP, exact=True)
    return found.keys.astype(np.int64), 1.0 - found.distances.astype(np.float32)
