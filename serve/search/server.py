"""Answers searches and hands out reports, from the newest index there is.

Each piece of a file is asked for on its own, once the one before was taken: a client that is slow
holds nothing here. What takes long is given up by who asks, after its `seconds`.

Invariant: a query is answered from one snapshot from its beginning to its end, and its vector is
compared with vectors of the same model only; a tenant is told of its own runs and of everybody's,
and of nothing else, by whatever name it asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from serve.search.answers import shown
from serve.search.catalog import FILE, Catalog
from serve.search.contract import Piece
from serve.search.embedding import Encoder
from serve.search.errors import AmbiguousReport, NoSuchReport, SearchDown
from serve.search.meaning import Meanings
from serve.search.query import Query, read_query
from serve.search.reports import FILES, file_state, headers_of, read_piece
from serve.search.runs import RunFolder
from serve.search.snapshot import Snapshot
from serve.search.space import Space
from serve.search.vectors import READ_ERRORS, Half
from serve.search.view import View

LOOK_SECONDS = 1.0
"""Between two looks whether there is a newer index."""
MEANING_SHARE = 0.5
"""Of a query's time, that its vector may take; then its words alone are searched."""
MOST_TOLD = 5
"""Ids in an error, or in a line of the log."""
_LOG = logging.getLogger(__name__)


class SearchServer:
    """One replica. Belongs to the loop it is started on."""

    def __init__(
        self, state: Path, encoder: Encoder, saw: Callable[[Half], None] = lambda probe: None
    ) -> None:
        """`saw`: see `Meanings`."""
        self._state = state
        self._encoder = encoder
        self._snapshot = Snapshot(Catalog(Space(encoder.model)))
        self._seen: tuple[int, int] | None = None
        self._meanings = Meanings(encoder, saw)
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
        """Take the newest index, if it is not the one there is, or if something of that could not
        be read. One that cannot be read is left, and the one before goes on to answer."""
        try:
            found = (self._state / FILE).stat()
            seen = (found.st_mtime_ns, found.st_ino)
            before, is_new = self._snapshot, seen != self._seen
            if not is_new and not before.waiting:
                return
            catalog = Catalog.read(self._state) if is_new else before.catalog
            if catalog is not None and catalog.space.model == self._encoder.model:
                new = await asyncio.to_thread(Snapshot.load, self._state, catalog, before)
                if new.waiting and new.waiting != before.waiting:
                    _LOG.warning(
                        "%d parts of the index cannot be read now: %s",
                        *(len(new.waiting), dict(list(new.waiting.items())[:MOST_TOLD])),
                    )
                # What a snapshot found out for its answers is kept as long as it is the same.
                if is_new or new.waiting != before.waiting:
                    self._snapshot = new
            self._seen = seen
        except FileNotFoundError:
            return
        except READ_ERRORS as error:
            _LOG.warning("the new index cannot be read: %s", error)

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """The answer to a query, as JSON. Raises BadQuery, NoMeaning, and SearchDown where nothing
        of the index can be read."""
        query = read_query(body)
        snapshot = self._snapshot
        meaning = await self._meanings.of(query, snapshot.catalog.space, seconds * MEANING_SHARE)
        given = tenant, query, meaning.vector
        try:
            view, hits = await asyncio.to_thread(_answer, snapshot, *given)
        except READ_ERRORS:
            _LOG.exception("a query failed: damaged parts of the index are left out")
            snapshot = await self._sound(snapshot)
            try:
                view, hits = await asyncio.to_thread(_answer, snapshot, *given)
            except READ_ERRORS as error:
                raise SearchDown("The index is damaged, and is made anew: try again.") from error
        return orjson.dumps(
            {
                "object": "search",
                "query": query.text,
                "mode": query.mode,
                "meaning": meaning.told,
                "meaning_reason": meaning.reason,
                "hits": hits,
                "searched": {
                    "runs": len(view.runs),
                    "documents": view.documents,
                    "texts": sum(run.texts for run in view.runs),
                    "embedded": sum(run.embedded for run in view.runs),
                },
                "skipped": len(snapshot.skipped_of(tenant)),
            }
        )

    async def _sound(self, snapshot: Snapshot) -> Snapshot:
        """What is not damaged of a snapshot, which is what is answered from until there is a newer
        one."""
        sound = await asyncio.to_thread(snapshot.sound)
        if self._snapshot is snapshot:
            self._snapshot = sound
        return sound

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
            for each in snapshot.skipped_of(tenant)
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


def _answer(
    snapshot: Snapshot, tenant: str, query: Query, vector: Half | None
) -> tuple[View, list[dict[str, Any]]]:
    view = snapshot.view(tenant)
    snapshot.check(tenant)
    return view, shown(view, view.search(query, vector), query.text)
