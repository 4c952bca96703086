"""Makes the graphs of an index where they are due, and anew where they are damaged.

Invariant: a graph that is told of was whole when it was last looked at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from serve.search.catalog import IndexedRun, SavedGraph
from serve.search.graphs import Graph, is_due, write_graph
from serve.search.seal import seal
from serve.search.vectors import READ_ERRORS, Part, folder_of, is_damage, read_parts

_LOG = logging.getLogger(__name__)


class Grapher:
    """The graphs of the index in `state`, one of each owner. `saved`: those there are."""

    def __init__(self, state: Path, saved: Iterable[SavedGraph]) -> None:
        self.saved = {graph.owner: graph for graph in saved}
        self._state = state
        self._counts: dict[SavedGraph, tuple[str, dict[str, int]]] = {}
        self._made_of: dict[str, frozenset[tuple[str, int]]] = {}
        """What the graphs were last made of: how much each whole segment had."""

    def is_damaged(self, owner: str) -> bool:
        """Whether the graph of an owner can be used no longer. Raises OSError or MemoryError where
        that cannot be told now."""
        try:
            self._covered(owner)
        except READ_ERRORS as error:
            if not is_damage(error) and not isinstance(error, FileNotFoundError):
                raise
            _LOG.warning("a graph is damaged, and is made anew: %s", error)
            return True
        return False

    def make(self, owner: str, runs: Mapping[str, IndexedRun], space: str) -> SavedGraph | None:
        """The graph of an owner's `runs`, by their segments, where a new one is due. A run goes in
        once all its vectors are there. `space`: the id of that of the vectors. Raises one of
        READ_ERRORS."""
        covered = self._covered(owner)
        whole = {name: run for name, run in runs.items() if run.embedded == run.texts}
        missing = sum(run.embedded for name, run in whole.items() if name not in covered)
        vain = sum(count for name, count in covered.items() if name not in runs)
        made_of = frozenset((name, run.embedded) for name, run in whole.items())
        if not covered:
            self._made_of.pop(owner, None)
        # One that would have what the last one has would not be better.
        if not is_due(sum(covered.values()), missing, vain) or self._made_of.get(owner) == made_of:
            return None
        made = self._make(owner, whole, space)
        self._made_of[owner] = made_of
        return made

    def _covered(self, owner: str) -> dict[str, int]:
        """How many vectors of each segment the graph has. Raises one of READ_ERRORS."""
        graph = self.saved.get(owner)
        if graph is None:
            return {}
        folder = self._state / "graphs" / graph.folder
        now = seal(folder)
        if graph not in self._counts or self._counts[graph][0] != now:
            self._counts[graph] = now, Graph(folder, graph).covered
        return self._counts[graph][1]

    def _make(self, owner: str, runs: Mapping[str, IndexedRun], space: str) -> SavedGraph | None:
        parts: dict[str, Part] = {}
        for name, run in sorted(runs.items()):
            part = read_parts(
                folder_of(self._state / "segments" / name, space), run.parts, run.texts
            )
            if part is not None:
                parts[name] = part
        if not parts:
            return None
        folder = self._state / "graphs" / f"{time.time_ns():x}"
        names = write_graph(folder, parts)
        _LOG.info("made a graph of %d vectors", sum(len(part.groups) for part in parts.values()))
        return SavedGraph(owner, folder.name, names)
