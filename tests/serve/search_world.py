"""Folders of runs as `fupan run` leaves them, an index over them, and vectors without a model.

runs = tmp_path / "retro"
leave_run(runs / "2026-03-10", [record("r1", "the refund is late"), ...])
async with search_world(runs, tmp_path / "index") as world:
    await world.follow()
    hits = await world.hits(query="refund")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.records import Issue, Record, Result, Via, results_to_table
from job.themes.table import THEMES_SCHEMA
from serve.ask.errors import Unavailable
from serve.models.errors import ModelNotLoaded
from serve.search.contract import Piece
from serve.search.embedding import Encoded
from serve.search.indexer import Indexer
from serve.search.server import SearchServer
from serve.search.settings import RunsSettings
from serve.search.space import PROBE
from serve.search.vectors import Half
from serve.search.words import words_at

BEGIN = datetime(2026, 3, 10, tzinfo=UTC)
LENGTH = 64


def record(id_: str, text: str, *, hour: float | None = 0, **known: Any) -> Result:
    """A record of the day at an hour of it, and what became of it. `known`: fields of either."""
    time = None if hour is None else BEGIN + timedelta(hours=hour)
    of_result = {
        name: known.pop(name) for name in ("outcome", "issues", "represented_by") if name in known
    }
    about = {"source": "app.log", "position": 0, "kind": "operation", "lang": "en", **known}
    via: Via = "folded" if of_result.get("represented_by") else "answered"
    made = Record(id=id_, text=text, time=time, **about)
    return Result(record=made, via=via, **{"outcome": "normal", **of_result})


def issue(event: str, severity: str = "high", theme: str | None = None, **known: Any) -> Issue:
    """One thing that a record says."""
    given: Any = {"event": event, "cause": None, "basis": "stated", "suggestion": None, **known}
    return Issue(severity=severity, quote=None, theme=theme, **given)  # type: ignore[arg-type]


def theme(id_: str, title: str, severity: str = "high") -> dict[str, Any]:
    """One row of themes.parquet."""
    named = {"id": id_, "title": title, "summary": title, "cause": None, "basis": "stated"}
    rest = {"action": None, "severity_reason": "", "named_by": "code", "positive": False}
    return {
        **named,
        **rest,
        "severity": severity,
        "issues": 1,
        "centroid": [0.0],
        "cohesion": 1.0,
        "space": "",
    }


def leave_run(
    folder: Path, rows: Iterable[Result], themes: Sequence[dict[str, Any]] = (), page: str = "page"
) -> Path:
    """What a finished run leaves in `folder`."""
    (folder / "results").mkdir(parents=True, exist_ok=True)
    table = results_to_table(list(rows))
    pq.write_table(table, folder / "results" / "part-00000.parquet")
    pq.write_table(
        pa.Table.from_pylist(list(themes), schema=THEMES_SCHEMA), folder / "themes.parquet"
    )
    report = {
        "headline": "1 problem needs action",
        "period": {"first": "2026-03-10T00:00:00Z", "last": None, "timezone": "UTC"},
        "run": {"language": "en", "model": "m", "finished": folder.name, "stopped": None},
        "ledger": {"records": table.num_rows},
        "themes": list(themes),
    }
    for name, value in (("report", report), ("ledger", {}), ("run", {"command": ["secret-path"]})):
        (folder / f"{name}.json").write_bytes(orjson.dumps(value, default=str))
    (folder / "report.html").write_text(page, encoding="utf-8")
    return folder


class WordVectors:
    """Vectors by which texts are near that share words. Notes what it was asked; `away`: it gives
    none now; `weights`: with others it gives others."""

    model = "words"

    def __init__(self, weights: int = 0) -> None:
        self.asked: list[str] = []
        self.away = False
        self.weights = weights

    async def ready(self, seconds: float) -> None:
        """See `serve.search.embedding.Encoder`."""
        if self.away:
            raise Unavailable("away")

    async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
        """See `serve.search.embedding.Encoder`."""
        await self.ready(seconds)
        self.asked += [text for text in texts if text != PROBE]
        vectors = [vector_of(text, self.weights) for text in (*texts, PROBE)]
        return Encoded(np.stack(vectors[:-1]), vectors[-1])

    def close(self) -> None:
        """Nothing to let go of."""


class Ready:
    """Models of a cluster that are ready, unless one is `loading`. `lost`: those that were not
    there after all."""

    def __init__(self) -> None:
        self.loading = False
        self.lost_ones: list[str] = []

    async def wait(self, model: str, deadline: float) -> None:
        """See `serve.search.served_encoder.Readiness`."""
        if self.loading:
            raise ModelNotLoaded(f"{model} on a host is not loaded")

    def lost(self, model: str) -> None:
        """See `serve.search.served_encoder.Readiness`."""
        self.lost_ones.append(model)


def vector_of(text: str, weights: int = 0) -> Half:
    """The vector of a text by its words."""
    vector = np.full(LENGTH, 1e-3, dtype=np.float32)
    for word, _, _ in words_at(text):
        vector[crc32(word.encode(), weights) % LENGTH] += 1
    return (vector / np.linalg.norm(vector)).astype(np.float16)


@dataclass
class Clock:
    """Stands still until it is moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """An index, who makes it and who answers from it."""

    indexer: Indexer
    server: SearchServer
    vectors: WordVectors
    state: Path
    clock: Clock = field(default_factory=Clock)

    async def follow(self) -> None:
        """Take in what there is, with all vectors, and answer from it."""
        self.indexer.look()
        while await self.indexer.embed(10):
            pass
        await self.server.refresh()

    @property
    def graph(self) -> Path:
        """The folder of the only graph there is."""
        (graph,) = (self.state / "graphs").iterdir()
        return graph

    async def answer(self, tenant: str = "", **body: Any) -> dict[str, Any]:
        """What is answered to a query."""
        found: dict[str, Any] = orjson.loads(await self.server.search(tenant, body, 10))
        return found

    async def hits(self, tenant: str = "", **body: Any) -> list[str]:
        """The ids of what is found."""
        return [hit["id"] for hit in (await self.answer(tenant, **body))["hits"]]

    async def reports(self, tenant: str = "") -> dict[str, Any]:
        """The runs there are."""
        found: dict[str, Any] = orjson.loads(await self.server.reports(tenant))
        return found

    async def file(self, run: str, name: str, tenant: str = "") -> tuple[dict[str, str], bytes]:
        """The headers and the bytes of a file."""
        told = orjson.loads(await self.server.file(tenant, run, name))
        pieces: list[bytes] = []
        while (offset := sum(map(len, pieces))) < told["size"]:
            piece = Piece(offset, told["size"], told["state"])
            pieces.append(await self.server.piece(tenant, run, name, piece))
        return told["headers"], b"".join(pieces)


@asynccontextmanager
async def search_world(
    *runs: Path | RunsSettings, state: Path, vectors: WordVectors | None = None
) -> AsyncIterator[World]:
    """The search over folders of runs, which is not made yet."""
    entries = [
        each if isinstance(each, RunsSettings) else RunsSettings(path=str(each)) for each in runs
    ]
    encoder, clock = vectors or WordVectors(), Clock()
    indexer = Indexer(entries, state, encoder, clock)
    world = World(indexer, SearchServer(state, encoder, indexer.saw), encoder, state, clock)
    try:
        yield world
    finally:
        await world.server.aclose()


def renamed(result: Result, id_: str) -> Result:
    """The same under another id."""
    return replace(result, record=replace(result.record, id=id_))
