"""Models that share a process: each is loaded when it is first asked for, the one that was not
asked for longest makes room.

Invariant: no more models are in memory than may be; a model is let go of only when nobody is being
answered by it any more, and only then the next is loaded; one that could not be loaded is not tried
again, and takes nobody's place, for FAILED_SECONDS.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from ray import serve as ray_serve

from serve.models.contract import ModelServer
from serve.models.errors import ModelNotLoaded
from serve.models.settings import ModelSettings, PoolSettings

Load = Callable[[ModelSettings], ModelServer]
"""Loads a model in this process; raises an error that says what is wrong."""
FAILED_SECONDS: Final = 60.0
"""After which a model that could not be loaded is tried again: long enough that the others of its
pool, one of which made room for it, are there most of the time."""


class _Loaded:
    """A model in memory. Belongs to the loop that it is made on."""

    def __init__(self, server: ModelServer, closed: Callable[[_Loaded], None]) -> None:
        """`closed`: told once it is being let go of."""
        self._server: ModelServer | None = server
        self._closed = closed
        self._used = 0
        self._free = asyncio.Event()
        self._free.set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @property
    def server(self) -> ModelServer | None:
        """None once it is let go of."""
        return self._server

    @asynccontextmanager
    async def use(self, server: ModelServer) -> AsyncIterator[ModelServer]:
        """`server`, its own, which is not closed meanwhile."""
        self._used += 1
        self._free.clear()
        try:
            yield server
        finally:
            self._used -= 1
            if not self._used:
                self._free.set()

    async def close(self) -> None:
        """Let go of it, once nobody uses it. Nothing here holds its memory afterwards."""
        while self._used:
            await self._free.wait()
        server, self._server = self._server, None
        if server is not None:
            self._closed(self)
            await server.aclose()

    def __del__(self) -> None:
        """Ray Serve calls this, in a thread, of the model that makes room, and waits for it before
        it loads the next."""
        if self._server is not None and threading.get_ident() != self._thread:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()


class Pool:
    """The models of one process. Belongs to the loop of its first call."""

    def __init__(
        self, settings: PoolSettings, load: Load, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`load` is called in a thread."""
        self._settings = settings.pool
        self._load = load
        self._clock = clock
        self._loaded: dict[str, _Loaded] = {}
        self._loading: dict[str, asyncio.Task[_Loaded]] = {}
        self._failed: dict[str, float] = {}

        async def get(name: str) -> _Loaded:
            found = self._loaded[name] = await self._read(name)
            return found

        self._get: Callable[[str], Awaitable[_Loaded]] = ray_serve.multiplexed(
            max_num_models_per_replica=settings.loaded
        )(get)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[ModelServer]:
        """The server of a model, loaded where it was not. Raises ModelNotLoaded."""
        while True:
            loaded = await self._of(name)
            # It may have made room for another since.
            if (server := loaded.server) is not None:
                break
        async with loaded.use(server) as server:
            yield server

    def loaded(self) -> dict[str, ModelServer]:
        """What is in memory, by name."""
        found = {name: each.server for name, each in self._loaded.items()}
        return {name: server for name, server in found.items() if server is not None}

    async def aclose(self) -> None:
        """Let go of all."""
        for each in list(self._loaded.values()):
            await each.close()

    async def _of(self, name: str) -> _Loaded:
        """The model, loaded once for all who wait for it, and for whoever asks next where nobody
        waits any more. Raises ModelNotLoaded."""
        left = self._failed.get(name, 0.0) - self._clock()
        if left > 0:
            raise _not_loaded(name, left)
        loading = self._loading.get(name)
        if loading is None:
            loading = self._loading[name] = asyncio.create_task(self._once(name))
        return await asyncio.shield(loading)

    async def _once(self, name: str) -> _Loaded:
        try:
            return await self._get(name)
        except Exception:
            # Ray Serve has written the reason into the log of this process.
            self._failed[name] = self._clock() + FAILED_SECONDS
            raise _not_loaded(name, FAILED_SECONDS) from None
        finally:
            del self._loading[name]

    async def _read(self, name: str) -> _Loaded:
        server = await asyncio.to_thread(self._load, self._settings[name])
        return _Loaded(server, self._drop)

    def _drop(self, closed: _Loaded) -> None:
        self._loaded = {name: each for name, each in self._loaded.items() if each is not closed}


def _not_loaded(name: str, left: float) -> ModelNotLoaded:
    said = f"{name} cannot be loaded; the log of its process says why"
    return ModelNotLoaded(said, 503, left)
