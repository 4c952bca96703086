"""Keeps the index like the runs there are: the one writer of its folder.

    state/segments/RUN-FINGERPRINT-FORMAT/  the index of a run (segment.py)
    state/vectors/RUN-.../SPACE/            its vectors (vectors.py)
    state/graphs/.../                       graphs over many vectors (graphs.py, grapher.py)
    state/models/...                        whose vectors there are (space.py)
    state/index.json                        what there is now (catalog.py)

A run is found by its words as soon as it was read; its vectors follow, themes first, then issues,
then records. Invariant: what was embedded once by a model, in whichever run, is not embedded again
by it; all vectors of one catalog are of one space; a folder that cannot be read is skipped and
named, and keeps no other from being searched; a segment that is damaged is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from serve.search.backlog import Backlog
from serve.search.catalog import Catalog, IndexedRun, Published, SavedGraph, SkippedRun
from serve.search.embedding import Encoder
from serve.search.errors import DamagedRun
from serve.search.folders import why
from serve.search.grapher import Grapher
from serve.search.leftovers import Leftovers
from serve.search.missing import Missing
from serve.search.runs import RunFolder, find_runs, is_under_way, shown_path
from serve.search.settings import RunsSettings
from serve.search.shelf import Shelf
from serve.search.space import PROBE, Space, space_of
from serve.search.vectors import READ_ERRORS, Groups, Half, is_damage

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
        self._space = Space(encoder.model)
        self._seen: Half | None = None
        self._runs: dict[str, IndexedRun] = {}
        self._skipped: dict[str, SkippedRun] = {}
        self._grapher = Grapher(state, ())
        self._leftovers = Leftovers(state, clock)
        self._lock = threading.Lock()
        """What looks for runs and what embeds them are in threads of their own."""
        self._looked = False
        """Whether all runs are known: what is published before that would forget those away."""
        self._leftovers.tidy()
        self._published = Published(state, clock)
        before = self._published.told
        self._shelf = Shelf(
            state / "segments", {run.segment: run.seal for run in before.runs} if before else None
        )
        if before is not None and before.space.model == encoder.model:
            self._space = before.space
            self._grapher = Grapher(state, before.graphs)
        self._backlog = Backlog(state / "segments", self._space.id)

    @property
    def behind(self) -> int:
        """Texts that have no vector yet."""
        return sum(run.texts - run.embedded for run in self._runs.values())

    def look(self) -> None:
        """Take in what is new, let go of what is gone, and publish where anything changed."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        listing = find_runs(self._entries)
        found = {run.id: run for run in listing.runs}
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
        before = self._published.told.folders if self._published.told else []
        for away, reason in listing.away(before).items():
            self._skip(away, reason)
        for gone in self._runs.keys() - found.keys():
            self._forget(self._runs.pop(gone))
        segments = {run.segment for run in self._runs.values()}
        self._backlog.keep(segments)
        self._looked = True
        told = self.publish()
        graphs = {graph.folder for graph in told.graphs}
        # A run that lacks vectors may take over those of what it was before.
        lacking = {name for name, run in self._runs.items() if run.embedded < run.texts}
        self._leftovers.sweep(segments, graphs, self._skipped.keys() | lacking)

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
        """Embed some of what has no vector yet, and publish it; whether there was any (before the
        first whole look there is none). Raises what `Encoder.encode` does where the model gives
        nothing within `seconds`, and one of READ_ERRORS where files cannot be read or written
        now."""
        if not self._looked:
            return False
        seen, self._seen = self._seen, None
        if seen is not None:
            await self._is_of(seen)
        portion = await asyncio.to_thread(self._next)
        if portion is not None and portion.texts and not self._space.probe:
            # Else the first portion would be of an unknown model, and embedded twice.
            await self._is_of((await self._encoder.encode([PROBE], seconds)).probe)
            portion = await asyncio.to_thread(self._next)
        if portion is None:
            return False
        vectors = None
        if portion.texts:
            # Meanwhile new runs are taken in.
            vectors, probe = await self._encoder.encode(portion.texts, seconds)
            if await self._is_of(probe):
                return True
        await asyncio.to_thread(self._keep, portion, vectors)
        return True

    def saw(self, probe: Half) -> None:
        """The model gave somebody this vector of PROBE: if it is another one now, all is embedded
        anew. Nobody asks the model for that alone, which would keep it from being let go."""
        self._seen = probe

    async def _is_of(self, probe: Half) -> bool:
        """Go on in the space of the model that gave `probe`; whether it is another one."""
        other = not self._space.has(probe)
        if other:
            await asyncio.to_thread(self._change, probe)
        return other

    def _change(self, probe: Half) -> None:
        with self._lock:
            if self._space.probe:
                _LOG.warning("the embedding model has other weights: its vectors are made anew")
            self._space = space_of(self._state, self._encoder.model, probe)
            self._grapher = Grapher(self._state, ())
            self._backlog = Backlog(self._state / "segments", self._space.id)
            for run in list(self._runs.values()):
                try:
                    self._runs[run.run.id] = self._shelf.counted(run, self._space.id)
                except READ_ERRORS:
                    del self._runs[run.run.id]  # it is taken in again
            self.publish()

    def make_graphs(self) -> None:
        """Make the graphs that are due, each though another one cannot be made. Raises one of
        READ_ERRORS for one that cannot."""
        with self._lock:
            known = list(self._runs.values()) if self._looked else []
            grapher, space = self._grapher, self._space.id
        failed: Exception | None = None
        for owner in sorted({run.run.owner for run in known}):
            runs = {run.segment: run for run in known if run.run.owner == owner}
            try:
                if grapher.is_damaged(owner):
                    self._tell_graph(grapher, owner, None)
                made = grapher.make(owner, runs, space)
                if made is not None:
                    self._tell_graph(grapher, owner, made)
            except READ_ERRORS as error:
                failed = error
        if failed is not None:
            raise failed

    def _tell_graph(self, grapher: Grapher, owner: str, graph: SavedGraph | None) -> None:
        """Publish the graph of an owner, or that there is none. What `grapher` made before the
        model got other weights is none of the graphs that there are."""
        with self._lock:
            if graph is None:
                grapher.saved.pop(owner, None)
            else:
                grapher.saved[owner] = graph
            self.publish()

    def _next(self) -> _Portion | None:
        """What is to be embedded next; None: nothing. Raises OSError or MemoryError where there is
        nothing but what cannot be read now."""
        not_now: Exception | None = None
        with self._lock:
            for run in list(self._runs.values()):
                if run.embedded == run.texts:
                    continue
                try:
                    missing = self._backlog.missing_of(run.segment)
                    if missing.parts != run.parts:
                        self._have(run, missing)  # else the next look finds what is not known
                    portion = _Portion(run, missing, *missing.next())
                    if self._shelf.is_as_left(run.segment):
                        return portion
                    raise ValueError("it is not what was written")
                except READ_ERRORS as error:
                    self._backlog.stop()
                    if is_damage(error) or isinstance(error, FileNotFoundError):
                        _LOG.warning("the index of the run %s is made anew: %s", run.run.id, error)
                        del self._runs[run.run.id]
                    else:
                        not_now = error
            self.publish()
        if not_now is not None:
            raise not_now
        return None

    def _keep(self, portion: _Portion, vectors: Half | None) -> None:
        """Keep the vectors of a portion, and publish. Raises one of READ_ERRORS."""
        run, missing = portion.run, portion.missing
        with self._lock:
            if not self._backlog.is_of(missing):
                return  # the run is gone, and its segment may be: if it comes back, it is new
            try:
                if vectors is not None:
                    missing.keep(portion.groups, vectors)
                if missing.complete:
                    missing.merge()
                else:
                    missing.compact()
            except READ_ERRORS:
                self._backlog.stop()
                raise
            known = self._runs.get(run.run.id)
            if known is not None and known.segment == run.segment:
                self._backlog.has_some(run.segment)
                self._have(known, missing)

    def _have(self, run: IndexedRun, missing: Missing) -> None:
        """A run has the vectors that were found or written. Raises OSError."""
        embedded = run.texts - missing.count
        self._runs[run.run.id] = replace(run, parts=missing.parts, embedded=embedded)
        self._shelf.left(run.segment, self._space.id, missing.parts)
        # What was told may name files that are not there any more.
        if not set(run.parts) <= set(missing.parts) or not self._published.may_wait:
            self.publish()

    def publish(self) -> Catalog:
        """Tell what there is, where that is not what was told last."""
        owners = {run.run.owner for run in self._runs.values()}
        catalog = Catalog(
            self._space,
            tuple(self._runs[name] for name in sorted(self._runs)),
            tuple(self._skipped[name] for name in sorted(self._skipped)),
            tuple(each for owner, each in sorted(self._grapher.saved.items()) if owner in owners),
        )
        self._published.tell(catalog)
        return catalog

    def _take_in(self, run: RunFolder) -> None:
        """Index a run, unless it is as it was. Raises DamagedRun."""
        known = self._runs.get(run.id)
        taken = self._runs[run.id] = self._shelf.take_in(run, known, self._space.id)
        as_it_was = known is not None and (known.seal, known.parts) == (taken.seal, taken.parts)
        if not as_it_was:
            self._backlog.made_anew(taken.segment)  # it may have been gone meanwhile
        if known is not None and known.segment != taken.segment:
            self._forget(known)

    def _forget(self, run: IndexedRun) -> None:
        """Have nothing told of a segment; until it is removed, its vectors are of use."""
        self._shelf.forget(run.segment)
        self._backlog.forget()
