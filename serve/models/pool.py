"""Models that share a process: each is loaded when it is first asked for, the one that was not
asked for longest makes room.

Invariant: no more models are in memory than may be; a model is let go of only when nobody is being
answered by it any more, and only then the next is loaded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ray import serve as ray_serve

from serve.ask.errors import Unavailable
from serve.models.contract import ModelServer
from serve.models.settings import ModelSettings, PoolSettings

Load = Callable[[ModelSettings], ModelServer]
"""Loads a model in this process; raises an error that says what is wrong."""


class _Loaded:
    """A model in memory. Belongs to the loop that it is made on."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.closed = False
        self._used = 0
        self._free = asyncio.Event()
        self._free.set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[ModelServer]:
        """The server, which is not closed meanwhile."""
        self._used += 1
        self._free.clear()
        try:
            yield self.server
        finally:
            self._used -= 1
            if not self._used:
                self._free.set()

    async def close(self) -> None:
        """Let go of it, once nobody uses it."""
        await self._free.wait()
        if not self.closed:
            self.closed = True
            await self.server.aclose()

    def __del__(self) -> None:
        """Ray Serve calls this, in a thread, of the model that makes room, and waits for it before
        it loads the next."""
        if not self.closed and threading.get_ident() != self._thread:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()


class Pool:
    """The models of one process. Belongs to the loop of its first call."""

    def __init__(self, settings: PoolSettings, load: Load) -> None:
        """`load` is called in a thread."""
        self._settings = settings.pool
        self._load = load
        self._loaded: dict[str, _Loaded] = {}

        async def get(name: str) -> _Loaded:
            found = self._loaded[name] = await self._read(name)
            return found

        self._get: Callable[[str], Awaitable[_Loaded]] = ray_serve.multiplexed(
            max_num_models_per_replica=settings.loaded
        )(get)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[ModelServer]:
        """The server of a model, loaded where it was not. Raises Unavailable."""
        loading = asyncio.ensure_future(self._get(name))
        # It is loaded for whoever asks next, too. What it fails by is told to whoever asks then.
        loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        loaded = await asyncio.shield(loading)
        async with loaded.use() as server:
            yield server

    def loaded(self) -> dict[str, ModelServer]:
        """What is in memory, by name."""
        return {name: each.server for name, each in self._loaded.items() if not each.closed}

    async def aclose(self) -> None:
        """Let go of all."""
        for each in self._loaded.values():
            await each.close()

    async def _read(self, name: str) -> _Loaded:
        try:
            return _Loaded(await asyncio.to_thread(self._load, self._settings[name]))
        except Exception as error:
            failed = Unavailable(f"{name} cannot be loaded: {error}", status=500)
            failed.said = str(error)
            raise failed from error
