"""The vectors of one partition, and which of them are nearest to another.

Invariant: `search` returns only what was added and not removed since, the nearest first.

A few vectors are compared one by one, more are in a graph of usearch (HNSW): an empty graph takes
34 KB, and most partitions hold one question, since what was said before it is part of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
FEW = 64
"""Vectors that are compared one by one: as fast as a graph of as many."""


class Nearest:
    """Vectors of length 1 by their numbers."""

    def __init__(self) -> None:
        self._few: dict[int, Vector] = {}
        self._rows: tuple[list[int], Vector] | None = None
        self._graph: Any = None

    def __len__(self) -> int:
        return len(self._few) if self._graph is None else len(self._graph)

    def add(self, number: int, vector: Vector) -> None:
        """Add a vector under a number that is free."""
        if self._graph is not None:
            self._graph.add(number, vector)
            return
        self._few[number] = vector
        self._rows = None
        if len(self._few) > FEW:
            self._graph = _graph(vector.shape[0])
            for each, known in self._few.items():
                self._graph.add(each, known)
            self._few = {}

    def remove(self, number: int) -> None:
        """Remove the vector of a number."""
        if self._graph is not None:
            self._graph.remove(number)
        else:
            del self._few[number]
            self._rows = None

    def search(self, vector: Vector, most: int) -> list[tuple[int, float]]:
        """At most `most` numbers with the cosine of their vectors to `vector`."""
        if self._graph is not None:
            found = self._graph.search(vector, most)
            pairs = zip(found.keys.tolist(), found.distances.tolist(), strict=True)
            return [(number, 1.0 - distance) for number, distance in pairs]
        if not self._few:
            return []
        if self._rows is None:
            self._rows = list(self._few), np.stack(list(self._few.values()))
        numbers, rows = self._rows
        cosines = rows @ vector
        order = np.argsort(-cosines, kind="stable")[:most]
        return [(numbers[at], float(cosines[at])) for at in order]


def _graph(length: int) -> Any:
    from usearch.index import Index

    return Index(ndim=length, metric="cos", dtype="f16")
