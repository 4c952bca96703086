"""The index as it was at one moment: what queries are answered from until the next one is loaded.

Invariant: a snapshot never changes, and what it has open stays readable though it is removed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from serve.search.catalog import Catalog, IndexedRun, SkippedRun
from serve.search.graphs import Graph, Loose, loose
from serve.search.mapped import is_cut
from serve.search.segment import Segment
from serve.search.settings import EVERYBODY
from serve.search.vectors import READ_ERRORS, Part, folder_of, is_damage, read_parts
from serve.search.view import View

DAMAGED = "its index is damaged, and is made anew"
NOT_NOW = "its index cannot be read now: {}"
_LOG = logging.getLogger(__name__)
_Opened = TypeVar("_Opened")


@dataclass
class Snapshot:
    """What a catalog names, opened. A graph or segment that is damaged is left out, until its
    writer has made it anew; so is, until it can be read, what cannot be now.

    `parts`: vectors that no graph has, by their segments, and the files they are of; `waiting`: why
    something cannot be read now, by its name: to be loaded again; `damaged`: the names of what is,
    which is looked at no more until there is a newer catalog."""

    catalog: Catalog
    segments: dict[str, Segment] = field(default_factory=dict)
    parts: dict[str, tuple[tuple[str, ...], Part]] = field(default_factory=dict)
    graphs: dict[str, Graph] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    _loose: dict[str, Loose | None] = field(default_factory=dict)
    _views: dict[str, View] = field(default_factory=dict)

    @classmethod
    def load(cls, state: Path, catalog: Catalog, before: Snapshot | None = None) -> Snapshot:
        """Open what `catalog` names, as far as it is not open in the one `before`; of that, vectors
        and graphs stay where newer ones cannot be read now."""
        new, old = cls(catalog), before or cls(catalog)
        if old.catalog.space != catalog.space:
            old = cls(old.catalog, old.segments)
        if old.catalog is catalog:
            new.damaged |= old.damaged
        new._open_graphs(state / "graphs", old)
        new._open_segments(state / "segments", old)
        return new

    def _open_graphs(self, folder: Path, old: Snapshot) -> None:
        of_owner = {graph.saved.owner: graph for graph in old.graphs.values()}
        for saved in self.catalog.graphs:
            name = saved.folder
            graph = old.graphs.get(name) or self._opened(name, Graph, folder / name, saved)
            if graph is None and name in self.waiting:
                graph = of_owner.get(saved.owner)
            if graph is not None:
                self.graphs[graph.saved.folder] = graph

    def _open_segments(self, folder: Path, old: Snapshot) -> None:
        seals = {run.segment: run.seal for run in old.catalog.runs}
        covered = {
            (graph.saved.owner, name)
            for graph in self.graphs.values()
            for name in graph.saved.segments
        }
        for run in self.catalog.runs:
            name = run.segment
            segment = old.segments.get(name) if seals.get(name) == run.seal else None
            segment = segment or self._opened(name, Segment.open, folder / name)
            if segment is None:
                continue
            self.segments[name] = segment
            if (run.run.owner, name) in covered or not run.parts:
                continue
            kept = old.parts.get(name)
            if kept is None or kept[0] != run.parts:
                vectors = folder_of(folder / name, self.catalog.space.id)
                waits = f"{name}/vectors"
                part = self._opened(waits, read_parts, vectors, run.parts, run.texts)
                if waits not in self.waiting:
                    kept = None if part is None else (run.parts, part)
            if kept is not None:
                self.parts[name] = kept

    def _opened(
        self, name: str, open_: Callable[..., _Opened | None], *given: object
    ) -> _Opened | None:
        """What `open_` gives; None, and noted, where it cannot."""
        if name in self.damaged:
            return None
        try:
            return open_(*given)
        except READ_ERRORS as error:
            if is_damage(error):
                _LOG.warning("what is damaged is not used: %s", error)
                self.damaged.add(name)
            else:
                self.waiting[name] = _why(error)
        return None

    def check(self, tenant: str) -> None:
        """Raises ValueError where a file that a tenant's answer is read from was made shorter: to
        read it would end the process."""
        segments, graphs = self.view(tenant).segments, self.graphs.values()
        for mapped in (*(each.mapped for each in segments), *(each.mapped for each in graphs)):
            for file in mapped:
                if is_cut(file):
                    raise ValueError(f"{file.path} was cut short")

    def sound(self) -> Snapshot:
        """The same without the segments and graphs whose files are not what was opened any more."""
        new = Snapshot(
            self.catalog,
            parts=self.parts,
            waiting=dict(self.waiting),
            damaged=set(self.damaged),
        )
        for name, graph in self.graphs.items():
            if not any(map(is_cut, graph.mapped)):
                new.graphs[name] = graph
        for name, segment in self.segments.items():
            if any(map(is_cut, segment.mapped)):
                continue
            now = new._opened(name, Segment.open, segment.folder)
            # What cannot be told now is taken to be as it was, but for what is gone.
            if now is not None or (name in new.waiting and segment.folder.exists()):
                new.segments[name] = segment
        return new

    def skipped_of(self, tenant: str) -> list[SkippedRun]:
        """The runs that a tenant would see, if they could be read, or their index could."""
        damaged = [
            SkippedRun(run.run, self._reason(run.segment))
            for run in self.catalog.runs
            if run.segment not in self.segments
        ]
        return [
            each
            for each in (*self.catalog.skipped, *damaged)
            if each.run.owner in (EVERYBODY, tenant)
        ]

    def _reason(self, segment: str) -> str:
        reason = self.waiting.get(segment)
        return DAMAGED if reason is None else NOT_NOW.format(reason)

    def runs_of(self, tenant: str) -> list[IndexedRun]:
        """The runs that a tenant sees, but for those whose index cannot be read."""
        return [
            run
            for run in self.catalog.runs
            if run.run.owner in (EVERYBODY, tenant) and run.segment in self.segments
        ]

    def view(self, tenant: str) -> View:
        """All that a tenant sees."""
        owners = {run.run.owner for run in self.catalog.runs}
        name = tenant if tenant in owners else EVERYBODY
        if name not in self._views:
            self._views[name] = self._view(name)
        return self._views[name]

    def _view(self, tenant: str) -> View:
        runs = self.runs_of(tenant)
        pairs = [(run, self.segments[run.segment]) for run in runs]
        offsets: dict[str, dict[str, int]] = {EVERYBODY: {}, tenant: {}}
        end = 0
        for run, segment in pairs:
            offsets[run.run.owner][run.segment] = end
            end += segment.groups
        # A run may have had another owner when a graph was made.
        nearest = [
            graph.nearest(offsets[graph.saved.owner])
            for graph in self.graphs.values()
            if graph.saved.owner in offsets
        ]
        for owner in offsets:
            rest = self._loose_of(owner)
            if rest is not None:
                nearest.append(rest.nearest(offsets[owner]))
        return View(pairs, nearest)

    def _loose_of(self, owner: str) -> Loose | None:
        """The vectors of an owner's runs that are in no graph: once, whoever sees them."""
        if owner not in self._loose:
            names = [run.segment for run in self.catalog.runs if run.run.owner == owner]
            parts = {name: self.parts[name][1] for name in names if name in self.parts}
            self._loose[owner] = loose(parts)
        return self._loose[owner]


def _why(error: Exception) -> str:
    """What is wrong, without the path, which is nobody's to see."""
    number = error.errno if isinstance(error, OSError) else None
    return "not enough memory" if number is None else os.strerror(number)
