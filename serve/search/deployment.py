"""The search on Ray Serve: the application `fupan-search`, beside the gateway.

    Indexer   one process, in the background: makes the index of the runs
    Search    as many as fupan.yaml says: answer from it

Invariant: only the indexer writes into the index; both must see the folders of runs and the folder
of the index under the same paths. Errors of a search are handed over as values: Ray Serve writes
one that is raised down with its traceback, whatever it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from ray import serve as ray_serve
from ray.serve.config import BackpressureConfig
from ray.serve.schema import LoggingConfig

from serve.app import read_settings
from serve.embedder import BUNDLED
from serve.gateway.readiness import Readiness
from serve.models.calls import RayCalls
from serve.models.settings import EmbedderSettings, Entry, Models, served
from serve.search.calls import DEPLOYMENT
from serve.search.choice import embedder_of
from serve.search.contract import Piece
from serve.search.embedding import Encoder, model_name
from serve.search.errors import SearchError
from serve.search.indexer import Indexer
from serve.search.own_encoder import OwnEncoder
from serve.search.runs import owners_of
from serve.search.served_encoder import ServedEncoder
from serve.search.server import SearchServer
from serve.search.settings import SearchSettings
from serve.search.state import search_folder
from serve.search.upkeep import Upkeep
from serve.search.vectors import Half

ONGOING, QUEUED = 16, 200
"""Queries in one replica at once, and in a gateway's queue for all; more are told to come again."""
_NICE = 10
"""How far the indexer stands behind what answers, where both want the same CPU."""
_MODELS: TypeAdapter[dict[str, Entry]] = TypeAdapter(Models)


class IndexerReplica:
    """The one process that makes the index."""

    def __init__(self, settings: Mapping[str, Any], models: Mapping[str, Any]) -> None:
        search = SearchSettings.model_validate(settings)
        self._encoder = _encoder(search, models)
        self._indexer = Indexer(search.runs, search_folder(search.state), self._encoder)
        self._upkeep = Upkeep(self._indexer)
        with contextlib.suppress(OSError):
            os.nice(_NICE)

    async def saw(self, probe: list[float]) -> None:
        """See `Indexer.saw`."""
        self._indexer.saw(np.array(probe, dtype=np.float16))

    async def check_health(self) -> None:
        """Raises where it works no longer. Called from the start on, which begins the work."""
        self._upkeep.begin()
        self._upkeep.check()

    async def __del__(self) -> None:
        """Ray Serve calls this at the end of the process."""
        self._upkeep.end()
        self._encoder.close()


class SearchReplica:
    """One process that answers."""

    def __init__(
        self, settings: Mapping[str, Any], models: Mapping[str, Any], indexer: Any
    ) -> None:
        """`indexer`: the handle of the other deployment."""

        def saw(probe: Half) -> None:
            # Nobody waits for it: what is lost is told by the next query again.
            indexer.saw.remote(probe.tolist())

        search = SearchSettings.model_validate(settings)
        self._server = SearchServer(search_folder(search.state), _encoder(search, models), saw)
        self._starting = asyncio.Lock()
        self._started = False

    async def search(
        self, tenant: str, body: Mapping[str, Any], seconds: float
    ) -> bytes | SearchError:
        """See `SearchServer.search`."""
        await self._start()
        try:
            return await self._server.search(tenant, body, seconds)
        except SearchError as error:
            return error

    async def reports(self, tenant: str) -> bytes:
        """See `SearchServer.reports`."""
        await self._start()
        return await self._server.reports(tenant)

    async def file(self, tenant: str, run: str, name: str) -> bytes | SearchError:
        """See `SearchServer.file`."""
        await self._start()
        try:
            return await self._server.file(tenant, run, name)
        except SearchError as error:
            return error

    async def piece(self, tenant: str, run: str, name: str, piece: Piece) -> bytes | SearchError:
        """See `SearchServer.piece`."""
        await self._start()
        try:
            return await self._server.piece(tenant, run, name, piece)
        except SearchError as error:
            return error

    async def check_health(self) -> None:
        """Raises where it does not look for newer indexes any more."""
        await self._start()
        self._server.check_health()

    async def __del__(self) -> None:
        """Ray Serve calls this at the end of the process."""
        await self._server.aclose()

    async def _start(self) -> None:
        async with self._starting:
            if not self._started:
                await self._server.start()
                self._started = True


def _encoder(search: SearchSettings, given: Mapping[str, Any]) -> Encoder:
    models = _MODELS.validate_python(given)
    name = embedder_of(search, models)
    if name == BUNDLED and name not in models:
        return OwnEncoder()
    entries = {model: (settings, entry) for model, settings, entry in served(models)}
    settings, entry = entries[name]
    if not isinstance(settings, EmbedderSettings):
        raise ValueError(f"search.embedder: {name!r} is no embedder")
    calls = RayCalls({name: entry})
    pooled = [] if entry == name else [name]
    readiness = Readiness(calls, pooled, time.monotonic)
    return ServedEncoder(
        model_name(settings.embedder), name, partial(calls.answer, name), readiness
    )


_options: dict[str, Any] = {
    "ray_actor_options": {"num_cpus": 0},
    "health_check_period_s": 5,
    "health_check_timeout_s": 30,
    "logging_config": LoggingConfig(enable_access_log=False),
}
_indexer = ray_serve.deployment(IndexerReplica, name="Indexer", num_replicas=1, **_options)
_search = ray_serve.deployment(
    SearchReplica,
    name=DEPLOYMENT,
    max_ongoing_requests=ONGOING,
    max_queued_requests=QUEUED,
    backpressure_config=BackpressureConfig(retry_after_s=1),
    **_options,
)


def application(search: SearchSettings, models: Mapping[str, Entry]) -> ray_serve.Application:
    """The application. `models`: those of the cluster. Raises ValueError where two entries do not
    agree whose a folder of runs is."""
    owners_of(search.runs)
    given = search.model_dump(mode="json"), _MODELS.dump_python(dict(models), mode="json")
    indexer = _indexer.bind(*given)
    return _search.options(num_replicas=search.replicas).bind(*given, indexer)


def build(args: dict[str, Any]) -> ray_serve.Application:
    """The application, from `args` of a Serve config file: the same as `serve.app:build` takes.
    Raises ValueError for settings without the section `search`."""
    settings = read_settings(args)
    if settings.search is None:
        raise ValueError("args: no section `search`; docs/search.md shows one")
    return application(settings.search, settings.models)
