"""What runs in a process of Ray Serve: a model's server, or those of a pool.

Invariant: an AskError is handed over as a value (see `calls.py`); what is measured is told to the
gateway's board, and measuring never fails a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import ray
from pydantic import TypeAdapter
from ray import serve as ray_serve

from serve.ask.errors import AskError
from serve.metrics.board import EXCHANGE_SECONDS, POST_SECONDS, Shared
from serve.metrics_actor import RayBoard
from serve.models.contract import ModelServer
from serve.models.gpu import gpu_numbers
from serve.models.load import Loader
from serve.models.numbers import snapshot
from serve.models.pool import Pool
from serve.models.settings import (
    EmbedderSettings,
    Entry,
    Models,
    PoolSettings,
    served,
)

_MODELS: TypeAdapter[dict[str, Entry]] = TypeAdapter(Models)


class _Servers(Protocol):
    """The models of one process."""

    def use(self, name: str) -> AbstractAsyncContextManager[ModelServer]:
        """The server of the model `name`."""
        ...

    def loaded(self) -> Mapping[str, ModelServer]:
        """What is in memory, by name."""
        ...

    async def aclose(self) -> None:
        """Let go of all."""
        ...


class ModelReplica:
    """One process of an entry of `models`."""

    def __init__(self, settings: Mapping[str, Any], loader: Loader, board: str | None) -> None:
        """`settings`: the section with this entry alone, in JSON; `board`: the application of the
        gateway that is told what is measured, None: nobody is."""
        models = _MODELS.validate_python(settings)
        ((self._name, entry),) = models.items()
        self._embedders = {
            name: model.embedder
            for name, model, _ in served(models)
            if isinstance(model, EmbedderSettings)
        }
        if not ray.get_gpu_ids():
            # Ray leaves all of a node's GPUs to be seen by who asked for none.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._servers: _Servers = (
            Pool(entry, loader)
            if isinstance(entry, PoolSettings)
            else _One(self._name, loader.load(entry))
        )
        self._board: Shared | None = RayBoard(board) if board is not None else None
        self._telling: asyncio.Task[None] | None = None
        self._id = f"{self._name}-{uuid.uuid4().hex[:8]}"

    async def ready(self) -> AskError | None:
        """See `ReadyCalls.ready`."""
        try:
            async with self._asked():
                return None
        except AskError as error:
            return error

    async def answer(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes | AskError:
        """See `ModelServer.answer`."""
        try:
            async with self._asked() as server:
                return await server.answer(endpoint, body, seconds)
        except AskError as error:
            return error

    async def stream(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes | AskError]:
        """See `ModelServer.stream`; an error is the last that comes."""
        try:
            async with (
                self._asked() as server,
                contextlib.aclosing(server.stream(endpoint, body, seconds)) as chunks,
            ):
                async for chunk in chunks:
                    yield chunk
        except AskError as error:
            yield error

    def embedders(self) -> dict[str, str]:
        """The models of vectors in memory here, by name, each as its settings name it."""
        loaded = self._servers.loaded()
        return {name: each for name, each in self._embedders.items() if name in loaded}

    async def check_health(self) -> None:
        """Raises where a model will not answer any more. Called from the start on, so that what is
        measured is told before the first call, too."""
        if self._board is not None and self._telling is None:
            self._telling = asyncio.create_task(self._tell(self._board))
        for server in self._servers.loaded().values():
            server.check_health()

    async def __del__(self) -> None:
        """Ray Serve calls this at the end of the process."""
        if self._telling is not None:
            self._telling.cancel()
        await self._servers.aclose()

    def _asked(self) -> AbstractAsyncContextManager[ModelServer]:
        return self._servers.use(ray_serve.get_multiplexed_model_id() or self._name)

    async def _tell(self, board: Shared) -> None:
        while True:
            with contextlib.suppress(Exception):
                models = {name: each.numbers() for name, each in self._servers.loaded().items()}
                told = snapshot(models) | gpu_numbers(self._name)
                async with asyncio.timeout(EXCHANGE_SECONDS):
                    await board.exchange(self._id, told)
            await asyncio.sleep(POST_SECONDS)


class _One:
    """A model that has its process alone."""

    def __init__(self, name: str, server: ModelServer) -> None:
        self._name = name
        self._server = server

    @asynccontextmanager
    async def use(self, _: str) -> AsyncIterator[ModelServer]:
        yield self._server

    def loaded(self) -> dict[str, ModelServer]:
        return {self._name: self._server}

    async def aclose(self) -> None:
        await self._server.aclose()
