"""Keeps the index like the runs there are: the one writer of its folder.

    state/segments/RUN-FINGERPRINT-FORMAT/  the index of a run (segment.py), with its vectors
    state/graphs/.../                       graphs over many vectors (graphs.py)
    state/index.json                        what there is now (catalog.py)

A run is found by its words as soon as it was read; its vectors follow, themes first, then issues,
then records. Invariant: what was embedded once, in whichever run, is not embedded again; a folder
that cannot be read is skipped and named, and keeps no other from being searched.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from serve.search.catalog import FILE, FORMAT, Catalog, IndexedRun, SavedGraph, SkippedRun
from serve.search.documents import read_documents
from serve.search.embedding import Encoder
from serve.search.errors import DamagedRun
from serve.search.folders import opened, stat_plain, why
from serve.search.graphs import Graph, is_due, write_graph
from serve.search.leftovers import Leftovers, whole_in
from serve.search.missing import Missing
from serve.search.reports import summary
from serve.search.runs import RunFolder, find_runs, fingerprint, is_under_way, shown_path
from serve.search.segment import Segment, is_sound, write_segment
from serve.search.settings import RunsSettings
from serve.search.vectors import (
    READ_ERRORS,
    Groups,
    Half,
    Part,
    folder_of,
    read_parts,
    sound_parts,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Portion:
    """Texts of a run that are embedded together."""

    run: IndexedRun
    missing: Missing
    groups: Groups
    texts: list[str]


class Indexer:
    """Makes the index of the runs below `entries` in the folder `state`."""

    def __init__(
        self,
        entries: Sequence[RunsSettings],
        state: Path,
        encoder: Encoder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries = entries
        self._state = state
        self._encoder = encoder
        self._catalog = Catalog(encoder.model)
        self._runs: dict[str, IndexedRun] = {}
        self._skipped: dict[str, SkippedRun] = {}
        self._unreadable: dict[str, str] = {}
        """Why segments could not be made, by the names they would have."""
        self._reports: dict[str, tuple[int, dict[str, Any]]] = {}
        """What is shown of each run, and when its report.json was written."""
        self._graphs: dict[str, SavedGraph] = {}
        self._counts: dict[SavedGraph, dict[str, int]] = {}
        self._graphed: dict[str, frozenset[tuple[str, int]]] = {}
        """What the graphs were last made of: how much each segment had."""
        self._leftovers = Leftovers(state, clock)
        self._working: tuple[str, Missing] | None = None
        self._lock = threading.Lock()
        """What looks for runs and what embeds them are in threads of their own."""
        self._leftovers.tidy()
        before = Catalog.read(state)
        if before is not None and before.model == encoder.model:
            self._graphs = {graph.owner: graph for graph in before.graphs}

    @property
    def behind(self) -> int:
        """Texts that have no vector yet."""
        return sum(run.texts - run.embedded for run in self._runs.values())

    def look(self) -> None:
        """Take in what is new, let go of what is gone, and publish where anything changed."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        found = {run.id: run for run in find_runs(self._entries)}
        self._skipped = {}
        for run in found.values():
            try:
                self._take_in(run)
            except DamagedRun as error:
                self._skip(run, error.message)
            except OSError as error:
                self._skip(run, f"it cannot be read or indexed now: {why(error)}")
            except READ_ERRORS as error:
                self._skip(run, f"it cannot be read: {type(error).__name__}")
        for gone in self._runs.keys() - found.keys():
            del self._runs[gone]
        if self._working is not None:
            known = {run.segment for run in self._runs.values()}
            self._working = self._working if self._working[0] in known else None
        self.publish()
        self._leftovers.sweep(
            {run.segment for run in self._runs.values()},
            {graph.folder for graph in self._catalog.graphs},
        )

    def _skip(self, run: RunFolder, reason: str) -> None:
        """Tell why a run is not searched. One that is made again is, until then, as it was."""
        under_way = False
        with contextlib.suppress(OSError):
            under_way = is_under_way(run)
        if not (under_way and run.id in self._runs):
            self._runs.pop(run.id, None)
            told = replace(run, path=shown_path(run.path), root=shown_path(run.root))
            self._skipped[run.id] = SkippedRun(told, reason)

    async def embed(self, seconds: float) -> bool:
        """Embed some of what has no vector yet, and publish it; whether there was any. Raises what
        `Encoder.encode` does where the model gives nothing within `seconds`."""
        portion = await asyncio.to_thread(self._next)
        if portion is None:
            return False
        vectors = None
        if portion.texts:
            # Meanwhile new runs are taken in.
            vectors = await self._encoder.encode(portion.texts, seconds)
        await asyncio.to_thread(self._keep, portion, vectors)
        return True

    def make_graphs(self) -> None:
        """Make the graphs that are due."""
        with self._lock:
            known = list(self._runs.values())
        for owner in {run.run.owner for run in known}:
            runs = {run.segment: run for run in known if run.run.owner == owner}
            graph = self._graphs.get(owner)
            covered: dict[str, int] = {}
            if graph is not None:
                try:
                    covered = self._covered(graph)
                except READ_ERRORS as error:
                    _LOG.warning("a graph is damaged, and is made anew: %s", error)
                    with self._lock:
                        del self._graphs[owner]
                        self.publish()
            missing = sum(run.embedded for name, run in runs.items() if name not in covered)
            vain = sum(count for name, count in covered.items() if name not in runs)
            state = frozenset((name, run.embedded) for name, run in runs.items())
            if not covered:
                self._graphed.pop(owner, None)
            # One that would have what the last one has would not be better.
            if is_due(sum(covered.values()), missing, vain) and self._graphed.get(owner) != state:
                self._graphed[owner] = state
                made = self._make_graph(owner, runs)
                if made is not None:
                    with self._lock:
                        self._graphs[owner] = made
                        self.publish()

    def _next(self) -> _Portion | None:
        """What is to be embedded next; None: nothing."""
        with self._lock:
            for run in list(self._runs.values()):
                if run.embedded == run.texts:
                    continue
                try:
                    missing = self._missing_of(run)
                    return _Portion(run, missing, *missing.next())
                except READ_ERRORS as error:
                    _LOG.warning("the index of the run %s is made anew: %s", run.run.id, error)
                    self._working = None
                    del self._runs[run.run.id]
        return None

    def _keep(self, portion: _Portion, vectors: Half | None) -> None:
        """Keep the vectors of a portion, and publish."""
        run, missing = portion.run, portion.missing
        with self._lock:
            if self._working is None or self._working[1] is not missing:
                return  # the run is gone, and its segment may be: if it comes back, it is new
            if vectors is not None:
                missing.keep(portion.groups, vectors)
            if missing.complete:
                missing.merge()
            else:
                missing.compact()
            known = self._runs.get(run.run.id)
            if known is not None and known.segment == run.segment:
                embedded = run.texts - missing.count
                self._runs[run.run.id] = replace(known, parts=missing.parts, embedded=embedded)
            self.publish()

    def publish(self) -> None:
        """Tell what there is, where that is not what was told last."""
        owners = {run.run.owner for run in self._runs.values()}
        catalog = Catalog(
            self._encoder.model,
            tuple(self._runs[name] for name in sorted(self._runs)),
            tuple(self._skipped[name] for name in sorted(self._skipped)),
            tuple(graph for owner, graph in sorted(self._graphs.items()) if owner in owners),
        )
        if catalog != self._catalog or not (self._state / FILE).exists():
            catalog.write(self._state)
            self._catalog = catalog

    def _take_in(self, run: RunFolder) -> None:
        """Index a run, unless it is as it was. Raises DamagedRun."""
        name = _name_of(run)
        report = self._report(run)
        known = self._runs.get(run.id)
        if known is not None and known.segment == name:
            self._runs[run.id] = replace(known, run=run, report=report)
            return
        if name in self._unreadable:
            raise DamagedRun(self._unreadable[name])
        folder = self._state / "segments" / name
        if not is_sound(folder):
            shutil.rmtree(folder, ignore_errors=True)
            try:
                documents = read_documents(run)
            except DamagedRun as error:
                if _name_of(run) == name:
                    self._unreadable[name] = error.message
                raise
            if _name_of(run) != name:
                raise DamagedRun("it was changed while it was read")
            write_segment(folder, documents)
        if self._working is not None and self._working[0] == name:
            self._working = None  # of before it was gone
        texts = Segment.open(folder).groups
        self._runs[run.id] = self._counted(IndexedRun(run, name, (), texts, 0, report))

    def _report(self, run: RunFolder) -> dict[str, Any]:
        with opened(run.root, run.path) as folder:
            seen = stat_plain(folder, "report.json")
        written = 0 if seen is None else seen.st_mtime_ns
        known = self._reports.get(run.id)
        if known is None or known[0] != written:
            known = self._reports[run.id] = written, summary(run)
        return known[1]

    def _missing_of(self, run: IndexedRun) -> Missing:
        """What a run has no vectors of; known from the portion before, if that was of the same."""
        if self._working is None or self._working[0] != run.segment:
            segments = self._state / "segments"
            missing = Missing.of(segments / run.segment, self._encoder.model)
            # Also those that nothing names any more: the same run's, of before it was made again.
            missing.recall([each for each in whole_in(segments) if each.name != run.segment])
            self._working = run.segment, missing
        return self._working[1]

    def _counted(self, run: IndexedRun) -> IndexedRun:
        """`run` with the vectors that it has on disk."""
        folder = folder_of(self._state / "segments" / run.segment, self._encoder.model)
        names, groups, _ = sound_parts(folder, run.texts)
        return replace(run, parts=tuple(names), embedded=len(groups))

    def _covered(self, graph: SavedGraph) -> dict[str, int]:
        """How many vectors of each segment a graph has. Raises one of READ_ERRORS."""
        if graph not in self._counts:
            self._counts[graph] = Graph(self._state / "graphs" / graph.folder, graph).covered
        return self._counts[graph]

    def _make_graph(self, owner: str, runs: dict[str, IndexedRun]) -> SavedGraph | None:
        parts: dict[str, Part] = {}
        for name, run in sorted(runs.items()):
            if run.embedded != run.texts:
                continue  # its vectors are not all there yet: it goes into the next graph
            folder = folder_of(self._state / "segments" / name, self._encoder.model)
            part = read_parts(folder, run.parts, run.texts)
            if part is not None:
                parts[name] = part
        if not parts:
            return None
        folder = self._state / "graphs" / f"{time.time_ns():x}"
        names = write_graph(folder, parts)
        _LOG.info("made a graph of %d vectors", sum(len(part.groups) for part in parts.values()))
        return SavedGraph(owner, folder.name, names)


def _name_of(run: RunFolder) -> str:
    """Of the segment of a run as it is now. Raises DamagedRun."""
    return f"{run.id}-{fingerprint(run)}-{FORMAT}"
