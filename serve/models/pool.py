"""Models that share a process: each is loaded when it is first asked for, the one that was not
asked for longest makes room.

Invariant: no more models are in memory than may be; a model is let go of only when nobody is being
answered by it any more, and only then the next is loaded. None makes room for one whose files tell
that it cannot be loaded. What made room for one that could not be all the same is loaded again, and
that one is not tried for FAILED_SECONDS, and twice as long each time that this happens again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from ray import serve as ray_serve

from serve.models.contract import ModelServer
from serve.models.errors import ModelNotLoaded
from serve.models.load import Loader
from serve.models.settings import PoolSettings

FAILED_SECONDS: Final = 60.0
"""After which a model that could not be loaded is tried again."""
MOST_FAILED_SECONDS: Final = 3600.0
"""The same where it is tried again and again, and another makes room each time."""

_log = logging.getLogger(__name__)


class _Failed(NamedTuple):
    """A model that could not be loaded: until when (by the clock) it is not tried again, and for
    how many seconds it was not since another last made room for it in vain."""

    until: float
    pause: float


class _LoadFailed(Exception):
    """Why a model could not be loaded. `made_room`: what did so for it, where anything did."""

    def __init__(self, why: str, made_room: str | None) -> None:
        super().__init__(why)
        self.made_room = made_room


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
            try:
                await server.aclose()
            except Exception:  # its own: none of the model that takes its place
                _log.exception("a model could not be closed, and is let go of all the same")

    def __del__(self) -> None:
        """Ray Serve calls this, in a thread, of the model that makes room, and waits for it before
        it loads the next."""
        if self._server is not None and threading.get_ident() != self._thread:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()


class Pool:
    """The models of one process. Belongs to the loop of its first call."""

    def __init__(
        self, settings: PoolSettings, loader: Loader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`loader` is called in threads."""
        self._settings = settings.pool
        self._loader = loader
        self._clock = clock
        self._loaded: dict[str, _Loaded] = {}
        self._loading: dict[str, asyncio.Task[_Loaded]] = {}
        self._failed: dict[str, _Failed] = {}
        self._made_room: str | None = None

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
        if name in self._failed and (left := self._failed[name].until - self._clock()) > 0:
            raise _not_loaded(name, left)
        return await asyncio.shield(self._loading.get(name) or self._begin(name))

    def _begin(self, name: str) -> asyncio.Task[_Loaded]:
        loading = self._loading[name] = asyncio.create_task(self._once(name))
        return loading

    async def _once(self, name: str) -> _Loaded:
        made_room = None
        try:
            if name not in self._loaded:
                await self._check(name)
            found = await self._get(name)
        except Exception as error:  # of Ray Serve's cache, too
            made_room = error.made_room if isinstance(error, _LoadFailed) else None
            raise _not_loaded(name, self._note(name, made_room is not None)) from None
        finally:
            del self._loading[name]
            # Whoever waits to be loaded goes first, and may need the place.
            if made_room is not None and not self._loading:
                self._begin(made_room).add_done_callback(_seen)
        self._failed.pop(name, None)
        return found

    async def _check(self, name: str) -> None:
        """Raises _LoadFailed where the files of the model tell that it cannot be loaded."""
        if wrong := await asyncio.to_thread(self._loader.fault, self._settings[name]):
            _log.error("%s cannot be loaded: %s", name, wrong)
            raise _LoadFailed(wrong, None)

    async def _read(self, name: str) -> _Loaded:
        """Called by Ray Serve's cache, once there is room."""
        made_room, self._made_room = self._made_room, None
        try:
            server = await asyncio.to_thread(self._loader.load, self._settings[name])
            return _Loaded(server, self._drop)
        except Exception as error:  # of a library: anything
            _log.exception("%s cannot be loaded", name)
            why = str(error)
        # The error itself holds what had been loaded of it, and that memory is needed.
        raise _LoadFailed(why, made_room)

    def _drop(self, closed: _Loaded) -> None:
        for name in [name for name, each in self._loaded.items() if each is closed]:
            del self._loaded[name]
            self._made_room = name

    def _note(self, name: str, in_vain: bool) -> float:
        """In how many seconds it is tried again. `in_vain`: another made room for it."""
        pause = self._failed[name].pause if name in self._failed else 0.0
        if in_vain:
            pause = min(MOST_FAILED_SECONDS, max(FAILED_SECONDS, 2 * pause))
        seconds = pause if in_vain else FAILED_SECONDS
        self._failed[name] = _Failed(self._clock() + seconds, pause)
        return seconds


def _not_loaded(name: str, left: float) -> ModelNotLoaded:
    return ModelNotLoaded(f"{name} cannot be loaded; the log of its process says why", 503, left)


def _seen(loading: asyncio.Task[_Loaded]) -> None:
    """Nobody waits for it: what is wrong with it is in the log."""
    if not loading.cancelled():
        loading.exception()
