"""The index as it was at one moment: what queries are answered from until the next one is loaded.

Invariant: a snapshot never changes, and what it has open stays readable though it is removed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from serve.search.catalog import Catalog, IndexedRun, SkippedRun
from serve.search.graphs import Graph, Loose, loose
from serve.search.segment import Segment, is_sound
from serve.search.settings import EVERYBODY
from serve.search.vectors import READ_ERRORS, Part, folder_of, read_parts
from serve.search.view import View

DAMAGED = "its index is damaged, and is made anew"
_LOG = logging.getLogger(__name__)


@dataclass
class Snapshot:
    """What a catalog names, opened. `parts`: vectors that no graph has, by segment and files. A
    graph or segment that is damaged is left out, until its writer has made it anew."""

    catalog: Catalog
    segments: dict[str, Segment] = field(default_factory=dict)
    parts: dict[tuple[str, tuple[str, ...]], Part] = field(default_factory=dict)
    graphs: dict[str, Graph] = field(default_factory=dict)
    _loose: dict[str, Loose | None] = field(default_factory=dict)
    _views: dict[str, View] = field(default_factory=dict)

    @classmethod
    def load(cls, state: Path, catalog: Catalog, before: Snapshot | None = None) -> Snapshot:
        """Open what `catalog` names, as far as it is not open in the one `before`. Raises
        OSError where something is not there (any more)."""
        old = before or cls(catalog)
        new = cls(catalog)
        seals = {run.segment: run.seal for run in old.catalog.runs}
        for saved in catalog.graphs:
            try:
                known = old.graphs.get(saved.folder)
                new.graphs[saved.folder] = known or Graph(state / "graphs" / saved.folder, saved)
            except FileNotFoundError:
                raise
            except READ_ERRORS as error:
                _LOG.warning("a graph is damaged, and is not used: %s", error)
        covered = {
            (graph.saved.owner, name)
            for graph in new.graphs.values()
            for name in graph.saved.segments
        }
        for run in catalog.runs:
            folder = state / "segments" / run.segment
            try:
                segment = old.segments.get(run.segment)
                if segment is None or seals.get(run.segment) != run.seal:
                    segment = Segment.open(folder)
            except FileNotFoundError:
                raise
            except READ_ERRORS as error:
                _LOG.warning("the index of the run %s is damaged: %s", run.run.id, error)
                continue
            new.segments[run.segment] = segment
            if (run.run.owner, run.segment) in covered or not run.parts:
                continue
            key = run.segment, run.parts
            part = old.parts.get(key)
            if part is None:
                part = read_parts(folder_of(folder, catalog.space.id), run.parts, run.texts)
            if part is not None:
                new.parts[key] = part
        return new

    def sound(self) -> Snapshot:
        """The same without the segments whose files are not what was opened any more."""
        kept = {name: each for name, each in self.segments.items() if is_sound(each.folder)}
        return Snapshot(self.catalog, kept, self.parts, self.graphs)

    def skipped_of(self, tenant: str) -> list[SkippedRun]:
        """The runs that a tenant would see, if they could be read, or their index could."""
        damaged = [
            SkippedRun(run.run, DAMAGED)
            for run in self.catalog.runs
            if run.segment not in self.segments
        ]
        return [
            each
            for each in (*self.catalog.skipped, *damaged)
            if each.run.owner in (EVERYBODY, tenant)
        ]

    def runs_of(self, tenant: str) -> list[IndexedRun]:
        """The runs that a tenant sees, but for those whose index is damaged."""
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
            keys = [(run.segment, run.parts) for run in self.catalog.runs if run.run.owner == owner]
            parts = {key[0]: self.parts[key] for key in keys if key in self.parts}
            self._loose[owner] = loose(parts)
        return self._loose[owner]
