"""Texts to vectors: by a model that the cluster serves, or by the bundled one in this process.

Invariant: row i belongs to text i and has the length 1, or is zero where the model refused the
text, so that nothing finds it by meaning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from serve.ask.errors import AskError, ContextOverflow, Refused
from serve.embedder import BUNDLED, Embedder
from serve.embedding.answer import read_answer
from serve.embedding.bundled import bundled_version
from serve.search.vectors import Half, clipped

BATCH = 32
"""Texts of one request to a deployment."""

Answer = Callable[[str, Mapping[str, Any], float], Awaitable[bytes]]
"""What a `serve.models.contract.ModelServer` answers with."""


class Encoder(Protocol):
    """`model`: which one, by a name that differs where its vectors do."""

    model: str

    async def encode(self, texts: Sequence[str], seconds: float) -> Half:
        """The vectors of `texts`. Raises AskError, EmbeddingModelError or TimeoutError where
        nobody gives them now."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def model_name(embedder: str) -> str:
    """What vectors by `embedder` are kept under (`bundled`, or a name or path)."""
    return bundled_version() if embedder == BUNDLED else embedder


class OwnEncoder:
    """The bundled model in a thread of this process, loaded when it is first asked."""

    def __init__(self) -> None:
        self.model = model_name(BUNDLED)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search-embedder")
        self._embedder: Embedder | None = None

    async def encode(self, texts: Sequence[str], seconds: float) -> Half:
        """See `Encoder`."""
        async with asyncio.timeout(seconds):
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._encode, [embeddable(text) for text in texts]
            )

    def close(self) -> None:
        """See `Encoder`."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, texts: Sequence[str]) -> Half:
        if self._embedder is None:
            self._embedder = Embedder()
        return self._embedder.encode(texts).astype(np.float16)


class ServedEncoder:
    """A model that the cluster serves, which is asked by `answer`."""

    def __init__(self, model: str, name: str, answer: Answer) -> None:
        """`model`: see `Encoder`; `name`: by which it is asked for."""
        self.model = model
        self._name = name
        self._answer = answer
        self._length = 0

    async def encode(self, texts: Sequence[str], seconds: float) -> Half:
        """See `Encoder`."""
        prepared = [embeddable(text) for text in texts]
        parts = [
            await self._batch(prepared[start : start + BATCH], seconds)
            for start in range(0, len(prepared), BATCH)
        ]
        if not any(part.shape[1] for part in parts) and not self._length:
            # All were refused: how long its vectors are, something harmless tells.
            self._length = (await self._vectors(["."], seconds)).shape[1]
        return _joined(parts, self._length)

    def close(self) -> None:
        """See `Encoder`."""

    async def _batch(self, texts: Sequence[str], seconds: float) -> Half:
        """The vectors of some texts; of no length where the model takes none of them."""
        try:
            return await self._vectors(texts, seconds)
        except (Refused, ContextOverflow):
            if len(texts) == 1:
                return np.zeros((1, 0), dtype=np.float16)
        half = len(texts) // 2
        parts = [await self._batch(some, seconds) for some in (texts[:half], texts[half:])]
        return _joined(parts, 0)

    async def _vectors(self, texts: Sequence[str], seconds: float) -> Half:
        body = {
            "model": self._name,
            "input": list(texts),
            "encoding_format": "base64",
            "truncate": True,
        }
        vectors = _vectors(await self._answer("embeddings", body, seconds), len(texts))
        self._length = vectors.shape[1]
        return vectors


def _joined(parts: Sequence[Half], length: int) -> Half:
    """Parts as one; those of no length are zero, of that of the others, or of `length`."""
    length = max(part.shape[1] for part in parts) or length
    return np.concatenate(
        [part if part.shape[1] else np.zeros((len(part), length), np.float16) for part in parts]
    )


def embeddable(text: str) -> str:
    """The part of a text that is embedded; never empty."""
    return clipped(text).strip() or "."


def _vectors(body: bytes, count: int) -> Half:
    """What an answer holds. Raises Unavailable for one that holds something else."""
    found = read_answer(body, count)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    vectors: Half = (found / np.maximum(lengths, 1e-12)).astype(np.float16)
    return vectors


NOT_NOW = (AskError, TimeoutError, OSError)
"""What says that nobody gives vectors now."""
