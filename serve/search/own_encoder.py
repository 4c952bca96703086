"""The bundled model in a thread of this process.

Invariant: it is loaded once, when it is first asked; one that cannot be loaded is tried again after
a while, and not by everybody who asks.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from serve.embedder import BUNDLED, Embedder, EmbeddingFailed, EmbeddingModelError
from serve.search.embedding import Encoded, embeddable, model_name
from serve.search.space import PROBE
from serve.search.vectors import Half

LOAD_SECONDS = 5.0
"""For which questions wait for the model, from when it began to be loaded."""
FAILED_SECONDS = 30.0
"""After which a model that could not be loaded is tried again, from when that was known."""


class _Loaded(NamedTuple):
    embedder: Embedder
    probe: Half


class OwnEncoder:
    """See `Encoder`. Belongs to the loop of its first call."""

    def __init__(
        self,
        load: Callable[[], Embedder] = Embedder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model_name(BUNDLED)
        self._load = load
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search-embedder")
        self._loading: asyncio.Future[_Loaded] | None = None
        self._began = 0.0
        self._ended = math.inf

    async def ready(self, seconds: float) -> None:
        """See `Encoder`."""
        loading = self._begin()
        left = min(seconds, self._began + LOAD_SECONDS - self._clock())
        async with asyncio.timeout(None if loading.done() else max(0.0, left)):
            await asyncio.shield(loading)

    async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
        """See `Encoder`."""
        async with asyncio.timeout(seconds):
            embedder, probe = await asyncio.shield(self._begin())
            prepared = [embeddable(text) for text in texts]
            run = asyncio.get_running_loop().run_in_executor
            return Encoded(await run(self._thread, _encode, embedder, prepared), probe)

    def close(self) -> None:
        """See `Encoder`."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> asyncio.Future[_Loaded]:
        """The loading of the model, which is begun where it was not, or failed a while ago."""
        loading, now = self._loading, self._clock()
        if loading is not None:
            failed = loading.done() and loading.exception() is not None
            if not failed or now < self._ended + FAILED_SECONDS:
                return loading
        loading = asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        loading.add_done_callback(self._end)
        self._loading, self._began, self._ended = loading, now, math.inf
        return loading

    def _end(self, loading: asyncio.Future[_Loaded]) -> None:
        self._ended = self._clock()
        # It is no error that nobody is told of, where nobody waits for it any more.
        if not loading.cancelled():
            loading.exception()

    def _open(self) -> _Loaded:
        try:
            embedder = self._load()
            return _Loaded(embedder, embedder.encode([PROBE]).astype(np.float16)[0])
        except Exception as error:
            raise EmbeddingModelError(f"{self.model} cannot be loaded: {error}") from error


def _encode(embedder: Embedder, texts: Sequence[str]) -> Half:
    try:
        return embedder.encode(texts).astype(np.float16)
    except EmbeddingFailed:
        if len(texts) == 1:
            return np.zeros((1, embedder.dim), dtype=np.float16)
    return np.concatenate([_encode(embedder, [text]) for text in texts])
