"""A model of vectors that does as a test says, and a server around it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import orjson

from serve.embedder import Embedder
from serve.embedding.engine import DoesNotFit, Vectors
from serve.embedding.server import EmbeddingServer
from serve.models.settings import EmbedderSettings

DIM = 4


class FakeEngine:
    """A word is a token. `together`: texts that fit in memory at once; a text with one of `broken`
    raises, one with "huge" never fits; `used`: the share of the memory in use. Batches wait until
    `open` is set, those that hold a text with the word `held` until `let_go` is; texts are
    counted once `countable` is."""

    name = "fake"
    dim = DIM
    most_tokens = 8
    slots = 1
    padded = True
    enough = 64
    most_batch = 4096

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.together = 1000
        self.broken: set[str] = set()
        self.used = 0.1
        self.closed = False
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.counted = 0
        self.counting, self.countable = threading.Event(), threading.Event()
        self.countable.set()
        self.held = ""
        self.holds, self.let_go = threading.Event(), threading.Event()

    def enter(self) -> None:
        pass

    def count(self, texts: Sequence[str]) -> list[int]:
        self.counting.set()
        self.countable.wait()
        self.counted += len(texts)
        return [len(text.split()) for text in texts]

    def cut(self, text: str) -> str:
        return " ".join(text.split()[: self.most_tokens])

    def run(self, texts: Sequence[str]) -> Vectors:
        self.entered.set()
        self.open.wait()
        if self.held and any(self.held in text.split() for text in texts):
            self.holds.set()
            self.let_go.wait()
        self.batches.append(list(texts))
        if len(texts) > self.together or any("huge" in text for text in texts):
            raise DoesNotFit("too much")
        for text in texts:
            if self.broken & set(text.split()):
                raise RuntimeError(f"broken by {text}")
        return np.stack([vector_of(text) for text in texts])

    def memory(self) -> float:
        return self.used

    def close(self) -> None:
        self.closed = True

    @property
    def computed(self) -> list[str]:
        """All texts that were computed, in order, but for the server's own first one."""
        return [text for batch in self.batches for text in batch][1:]


def vector_of(text: str) -> Any:
    """Of length 1; another for each text."""
    drawn = np.random.default_rng(abs(hash(text)) % 2**32).standard_normal(DIM)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def near(found: Any, text: str) -> bool:
    """Whether the vector is that of `text`."""
    return bool(np.allclose(found, vector_of(text), atol=1e-6))


class FakeEmbedder(Embedder):
    """An Embedder of a FakeEngine."""

    def __init__(self, engine: FakeEngine) -> None:
        self._use(engine)


@asynccontextmanager
async def server(engine: FakeEngine, **settings: Any) -> AsyncIterator[EmbeddingServer]:
    """The server of `engine`."""
    made = EmbeddingServer(
        EmbedderSettings(embedder="fake", **settings), lambda *_: FakeEmbedder(engine)
    )
    try:
        yield made
    finally:
        engine.open.set()
        engine.let_go.set()
        engine.countable.set()
        await made.aclose()


async def ask(
    of: EmbeddingServer, given: Any, seconds: float = 30.0, **more: Any
) -> dict[str, Any]:
    """Its answer."""
    body = {"model": "fake", "input": given, **more}
    answer: dict[str, Any] = orjson.loads(await of.answer("embeddings", body, seconds))
    return answer


async def vectors(of: EmbeddingServer, given: Any, **more: Any) -> list[list[float]]:
    """Of its answer."""
    return [item["embedding"] for item in (await ask(of, given, **more))["data"]]
