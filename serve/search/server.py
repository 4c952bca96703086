"""Answers searches and hands out reports, from the newest index there is.

Each piece of a file is asked for on its own, once the one before was taken: a client that is slow
holds nothing here. What takes long is given up by who asks, after its `seconds`.

Invariant: a query is answered from one snapshot from its beginning to its end; a tenant is told of
its own runs and of everybody's, and of nothing else, by whatever name it asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from serve.embedder import EmbeddingModelError
from serve.search.answers import shown
from serve.search.catalog import FILE, Catalog, SkippedRun
from serve.search.contract import Piece
from serve.search.embedding import NOT_NOW, Encoder
from serve.search.errors import AmbiguousReport, NoMeaning, NoSuchReport
from serve.search.query import Query, read_query
from serve.search.reports import FILES, file_state, headers_of, read_piece
from serve.search.runs import RunFolder
from serve.search.settings import EVERYBODY
from serve.search.snapshot import Snapshot
from serve.search.vectors import READ_ERRORS, Half
from serve.search.view import View

LOOK_SECONDS = 1.0
"""Between two looks whether there is a newer index."""
MEANING_SHARE = 0.5
"""Of a query's time, that its vector may take; then its words alone are searched."""
MOST_TOLD = 5
"""Ids in an error."""
RECENT = 256
"""Queries whose vectors are remembered."""
_LOG = logging.getLogger(__name__)


class SearchServer:
    """One replica. Belongs to the loop it is started on."""

    def __init__(self, state: Path, encoder: Encoder) -> None:
        self._state = state
        self._encoder = encoder
        self._snapshot = Snapshot(Catalog(encoder.model))
        self._seen: tuple[int, int] | None = None
        self._recent: OrderedDict[str, Half] = OrderedDict()
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the index that there is, and look for newer ones."""
        await self.refresh()
        self._looking = asyncio.create_task(self._look())

    async def aclose(self) -> None:
        """Look no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        self._encoder.close()

    async def refresh(self) -> None:
        """Take the newest index, if it is not the one there is. One that cannot be read (any more)
        is left, and the one before goes on to answer."""
        try:
            found = (self._state / FILE).stat()
            seen = (found.st_mtime_ns, found.st_ino)
            if seen == self._seen:
                return
            catalog = Catalog.read(self._state)
            if catalog is not None and catalog.model == self._encoder.model:
                self._snapshot = await asyncio.to_thread(
                    Snapshot.load, self._state, catalog, self._snapshot
                )
            self._seen = seen
        except FileNotFoundError:
            return
        except READ_ERRORS as error:
            _LOG.warning("the new index cannot be read: %s", error)

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """The answer to a query, as JSON. Raises BadQuery and NoMeaning."""
        query = read_query(body)
        snapshot = self._snapshot
        view = await asyncio.to_thread(snapshot.view, tenant)
        vector, meaning = await self._vector(query, view, seconds * MEANING_SHARE)
        hits = await asyncio.to_thread(_answer, view, query, vector)
        return orjson.dumps(
            {
                "object": "search",
                "query": query.text,
                "mode": query.mode,
                "meaning": meaning,
                "hits": hits,
                "searched": {
                    "runs": len(view.runs),
                    "documents": view.documents,
                    "texts": sum(run.texts for run in view.runs),
                    "embedded": sum(run.embedded for run in view.runs),
                },
                "skipped": len(_skipped(snapshot, tenant)),
            }
        )

    async def reports(self, tenant: str, seconds: float = 0) -> bytes:
        """The runs that a tenant sees, newest first, as JSON."""
        snapshot = self._snapshot
        runs = sorted(
            snapshot.runs_of(tenant),
            key=lambda run: (run.report["finished"] or "", run.run.id),
            reverse=True,
        )
        data = [
            {
                "object": "report",
                "id": run.run.id,
                "name": run.run.name,
                **run.report,
                "texts": run.texts,
                "embedded": run.embedded,
                "report": f"/v1/reports/{run.run.id}",
                "files": [f"/v1/reports/{run.run.id}/{name}" for name in FILES],
            }
            for run in runs
        ]
        skipped = [
            {"id": each.run.id, "name": each.run.name, "reason": each.reason}
            for each in _skipped(snapshot, tenant)
        ]
        return orjson.dumps({"object": "list", "data": data, "skipped": skipped})

    async def file(self, tenant: str, run: str, name: str, seconds: float = 0) -> bytes:
        """See `Search.file`. Raises NoSuchReport and AmbiguousReport."""
        folder = self._run(tenant, run)
        size, state = await asyncio.to_thread(file_state, folder, name)
        headers = {**headers_of(name), "content-length": str(size)}
        told = {"run": folder.id, "headers": headers, "size": size, "state": state}
        return orjson.dumps(told)

    async def piece(
        self, tenant: str, run: str, name: str, piece: Piece, seconds: float = 0
    ) -> bytes:
        """See `Search.piece`. Raises NoSuchReport and AmbiguousReport."""
        return await asyncio.to_thread(read_piece, self._run(tenant, run), name, Piece(*piece))

    def _run(self, tenant: str, run: str) -> RunFolder:
        """The run of this id, else the only one of this name. Raises NoSuchReport and
        AmbiguousReport."""
        known = [each.run for each in self._snapshot.runs_of(tenant)]
        for found in (
            [each for each in known if each.id == run],
            [each for each in known if each.name == run],
        ):
            if len(found) > 1:
                ids = ", ".join(each.id for each in found[:MOST_TOLD])
                more = ", ..." if len(found) > MOST_TOLD else ""
                raise AmbiguousReport(
                    f"{len(found)} runs have the name {run[:60]!r}: ask for one by its id ({ids}"
                    f"{more}).",
                    "run",
                )
            if found:
                return found[0]
        raise NoSuchReport(f"There is no run {run[:60]!r} here: GET /v1/reports lists them.")

    def check_health(self) -> None:
        """Raises where the replica does not look for newer indexes any more."""
        if self._looking is not None and self._looking.done():
            raise RuntimeError("the search does not look for new runs any more")

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.refresh()

    async def _vector(self, query: Query, view: View, seconds: float) -> tuple[Half | None, str]:
        """The vector of a query, and what became of its meaning. Raises NoMeaning where it was
        asked for nothing else."""
        if query.mode == "words":
            return None, "not_asked"
        known = self._recent.get(query.text)
        if known is not None:
            self._recent.move_to_end(query.text)
            return known, "used"
        try:
            vector = (await self._encoder.encode([query.text], seconds))[0]
        except (*NOT_NOW, EmbeddingModelError) as error:
            if query.mode == "meaning":
                raise NoMeaning(
                    "The embedding model does not answer now: search by words, or try again."
                ) from error
            _LOG.warning("a query is searched by its words alone: %s", error)
            return None, "unavailable"
        if not vector.any():
            if query.mode == "meaning":
                raise NoMeaning("The embedding model refuses this text: search by words.")
            return None, "unavailable"
        self._recent[query.text] = vector
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return vector, "used"


def _answer(view: View, query: Query, vector: Half | None) -> list[dict[str, Any]]:
    return shown(view, view.search(query, vector), query.text)


def _skipped(snapshot: Snapshot, tenant: str) -> list[SkippedRun]:
    return [each for each in snapshot.catalog.skipped if each.run.owner in (EVERYBODY, tenant)]
