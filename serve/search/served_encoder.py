"""A model that the cluster serves, asked as any client asks it.

Invariant: the vectors of one answer are of one model, also while its processes are replaced by ones
with other weights.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from serve.ask.errors import ContextOverflow, Refused, Unavailable
from serve.embedding.answer import read_answer
from serve.search.embedding import Encoded, embeddable
from serve.search.space import PROBE, alike
from serve.search.vectors import Half

BATCH = 32
"""Texts of one request to a deployment."""

Answer = Callable[[str, Mapping[str, Any], float], Awaitable[bytes]]
"""What a `serve.models.contract.ModelServer` answers with."""


class Readiness(Protocol):
    """Whether a model of the cluster can be asked: `serve.gateway.readiness`."""

    async def wait(self, model: str, deadline: float) -> None:
        """Raises AskError where it is not ready; see `Encoder.ready`. `deadline`: by its clock."""
        ...

    def lost(self, model: str) -> None:
        """It was not there after all."""
        ...


class ServedEncoder:
    """A model that the cluster serves, which is asked by `answer`."""

    def __init__(
        self,
        model: str,
        name: str,
        answer: Answer,
        readiness: Readiness,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`model`: see `Encoder`; `name`: by which it is asked for; `clock`: that of
        `readiness`."""
        self.model = model
        self._name = name
        self._answer = answer
        self._readiness = readiness
        self._clock = clock

    async def ready(self, seconds: float) -> None:
        """See `Encoder`."""
        await self._readiness.wait(self._name, self._clock() + seconds)

    async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
        """See `Encoder`."""
        prepared = [embeddable(text) for text in texts]
        try:
            async with asyncio.timeout(seconds):
                return _joined(
                    [
                        await self._batch(prepared[start : start + BATCH], seconds)
                        for start in range(0, len(prepared), BATCH)
                    ]
                )
        except (Unavailable, TimeoutError):
            self._readiness.lost(self._name)
            raise

    def close(self) -> None:
        """See `Encoder`."""

    async def _batch(self, texts: Sequence[str], seconds: float) -> Encoded:
        """The vectors of some texts; zero where the model takes one of them not."""
        try:
            return await self._asked(texts, seconds)
        except (Refused, ContextOverflow):
            if len(texts) == 1:
                probe = (await self._asked([], seconds)).probe
                return Encoded(np.zeros((1, len(probe)), dtype=np.float16), probe)
        half = len(texts) // 2
        return _joined([await self._batch(some, seconds) for some in (texts[:half], texts[half:])])

    async def _asked(self, texts: Sequence[str], seconds: float) -> Encoded:
        """By one request, so that one process answers; it keeps the vector of PROBE."""
        body = {
            "model": self._name,
            "input": [*texts, PROBE],
            "encoding_format": "base64",
            "truncate": True,
        }
        found = _vectors(await self._answer("embeddings", body, seconds), len(texts) + 1)
        return Encoded(found[:-1], found[-1])


def _joined(parts: Sequence[Encoded]) -> Encoded:
    """Parts as one. Raises Unavailable where they are of several models."""
    probe = parts[0].probe
    if not all(alike(part.probe, probe) for part in parts):
        raise Unavailable("the model was replaced by another one while it was asked")
    return Encoded(np.concatenate([part.vectors for part in parts]), probe)


def _vectors(body: bytes, count: int) -> Half:
    """What an answer holds. Raises Unavailable for one that holds something else."""
    found = read_answer(body, count)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    vectors: Half = (found / np.maximum(lengths, 1e-12)).astype(np.float16)
    return vectors
