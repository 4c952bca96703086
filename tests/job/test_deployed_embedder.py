"""A run that asks a model of its cluster, whose server is in this process here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import numpy as np
import pytest

from job.deployed_embedder import TEXTS, TRIES, DeployedEmbedder
from serve.ask.errors import AskError, ContextOverflow
from serve.models.errors import ModelBusy, ModelLost
from tests.serve.embedding_world import FakeEngine, server, vector_of


class Calls:
    """Implements `ModelCalls` by a server of a FakeEngine. `wrong`: what the next calls end with
    instead."""

    def __init__(self, engine: FakeEngine, wrong: list[AskError]) -> None:
        self.engine = engine
        self.wrong = wrong
        self.sizes: list[int] = []

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelCalls`."""
        self.sizes.append(len(body["input"]))
        if self.wrong:
            raise self.wrong.pop(0)
        async with server(self.engine) as of:
            return await of.answer(endpoint, body, seconds)

    def stream(self, *_: Any) -> AsyncGenerator[bytes]:
        """Vectors are not streamed."""
        raise NotImplementedError


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is waited for between two tries, and is not here."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr("job.deployed_embedder.asyncio.sleep", at_once)
    return found


def test_distinct_texts_are_asked_in_parts_and_rows_are_in_order() -> None:
    calls = Calls(FakeEngine(), [])
    texts = [f"text {number % 100}" for number in range(150)]
    vectors = DeployedEmbedder("e5", calls).encode(texts)
    assert sorted(calls.sizes) == sorted([TEXTS, 100 - TEXTS])
    assert np.array_equal(vectors, np.stack([vector_of(text) for text in texts]))
    assert DeployedEmbedder("e5", calls).encode([]).shape == (0, FakeEngine.dim)


def test_a_busy_model_and_a_lost_replica_are_asked_again(pauses: list[float]) -> None:
    calls = Calls(FakeEngine(), [ModelBusy("full", 503, 7.0), ModelLost("gone")])
    assert DeployedEmbedder("e5", calls).encode(["a"]).shape == (1, FakeEngine.dim)
    assert [pause for pause in pauses if pause] == [7.0, 2.0]


def test_what_will_not_be_answered_is_told() -> None:
    with pytest.raises(ModelBusy):
        DeployedEmbedder("e5", Calls(FakeEngine(), [ModelBusy("full")] * TRIES)).encode(["a"])
    with pytest.raises(ContextOverflow):
        DeployedEmbedder("e5", Calls(FakeEngine(), [])).encode(["w " * 100])
