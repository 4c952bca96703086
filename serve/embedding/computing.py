"""Batches of texts, computed in the embedder's threads, and whether its model is well.

Invariant: no text that is sent makes a model look ill: that it is, a text of our own tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serve.batcher import Computed
from serve.embedder import Embedder, EmbeddingFailed, EmbeddingModelError
from serve.embedding.halves import Failed, Halved, Outcome

FAILED_IN_A_ROW: Final = 16
"""Texts that failed alone with no success between, though they fit in memory: it may be the model
and not the texts, so that it is tried with a text of our own."""
OWN_TEXT: Final = "fupan"


class TextFailed(Exception):
    """The model gave no vector for `text`. `fits`: False where it does not fit in memory."""

    def __init__(self, text: str, failed: Failed) -> None:
        super().__init__(failed.reason)
        self.text = text
        self.fits = failed.fits


class Computing:
    """The batches of one embedder. Belongs to one loop."""

    def __init__(self, embedder: Embedder) -> None:
        """Has it compute a text, so that what is loaded at the first batch is loaded now. Raises
        EmbeddingModelError where it gives no vector of it."""
        try:
            embedder.encode([OWN_TEXT])
        except EmbeddingFailed as error:
            raise EmbeddingModelError(f"the model is loaded, but {error}") from error
        self._embedder = embedder
        self._failures = 0
        self._ill = ""

    def check(self) -> None:
        """Raises RuntimeError where the model fails whatever it is given."""
        if self._ill:
            raise RuntimeError(
                f"{self._embedder.name}: the last {self._failures} texts all failed, and so did "
                f"{OWN_TEXT!r}: {self._ill}"
            )

    async def compute(self, texts: Sequence[str]) -> Computed[NDArray[np.float32]]:
        """One batch."""
        halved = await self._run(texts)
        results = list(self._results(texts, halved.outcomes))
        memory = self._embedder.engine.memory()
        if self._failures >= FAILED_IN_A_ROW:
            await self._try_own_text()
        return Computed(results, halved.fitted, memory=memory)

    async def _run(self, texts: Sequence[str]) -> Halved:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._embedder.pool, self._embedder.run, texts)

    async def _try_own_text(self) -> None:
        (outcome,) = (await self._run([OWN_TEXT])).outcomes
        if isinstance(outcome, Failed):
            self._ill = outcome.reason
        else:
            self._well()

    def _results(
        self, texts: Sequence[str], outcomes: Iterable[Outcome]
    ) -> Iterable[NDArray[np.float32] | Exception]:
        for text, outcome in zip(texts, outcomes, strict=True):
            if isinstance(outcome, Failed):
                self._failures += outcome.fits
                yield TextFailed(text, outcome)
            else:
                self._well()
                yield outcome

    def _well(self) -> None:
        """The model has just given a vector."""
        self._failures, self._ill = 0, ""
