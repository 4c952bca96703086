"""Questions to vectors, away from the event loop.

Invariant: one batch at a time, in one thread; what waits goes together in the next batch, equal
texts once. At most `WAITING` texts wait. Whoever asks may be cancelled, and nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from serve.cache.nearest import Vector
from serve.embedder import Vectors

Embed = Callable[[Sequence[str]], Vectors]
BATCH = 16
"""Texts of one batch: more would make the first of them wait for the last."""
WAITING = 64
"""Texts that wait at most; a question beyond is not looked up, it would be asked sooner."""
RECENT = 256
"""Vectors that are remembered, since an answer is kept soon after its question was looked up."""


class QuestionVectors:
    """The vectors of questions by `embed` (rows of length 1, in the order of the texts)."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="semantic-cache")
        self._recent: OrderedDict[str, Vector] = OrderedDict()
        self._waiting: dict[str, asyncio.Future[Vector | None]] = {}
        self._work: asyncio.Task[None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether another text may wait."""
        return len(self._waiting) < WAITING

    def known(self, text: str) -> Vector | None:
        """The vector of `text` if it was asked for not long ago."""
        vector = self._recent.get(text)
        if vector is not None:
            self._recent.move_to_end(text)
        return vector

    async def of(self, text: str) -> Vector | None:
        """The vector of `text`; None where too many wait, or where the model failed on it."""
        known = self.known(text)
        if known is not None:
            return known
        future = self._waiting.get(text)
        if future is None:
            if not self.has_room:
                return None
            future = self._waiting[text] = asyncio.get_running_loop().create_future()
            if self._work is None or self._work.done():
                self._work = asyncio.create_task(self._embed_what_waits())
        return await asyncio.shield(future)

    async def aclose(self) -> None:
        """End the thread; what waits gets None."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _embed_what_waits(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                texts = list(self._waiting)[:BATCH]
                try:
                    vectors = await loop.run_in_executor(self._thread, self._embed, texts)
                except Exception:  # whatever a model raises: the question is asked, not looked up
                    vectors = None
                for row, text in enumerate(texts):
                    self._answer(text, None if vectors is None else vectors[row])
        finally:
            for text in list(self._waiting):
                self._answer(text, None)

    def _answer(self, text: str, vector: Vector | None) -> None:
        future = self._waiting.pop(text)
        if not future.done():
            future.set_result(vector)
        if vector is not None:
            self._recent[text] = vector.copy()
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)
