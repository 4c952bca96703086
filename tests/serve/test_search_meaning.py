"""A query's vector where the model is away, slow, still loaded or not to be loaded."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from serve.ask.errors import Unavailable
from serve.embedder import EmbeddingModelError
from serve.models.errors import ModelNotLoaded
from serve.search.embedding import Encoded, reason_of
from serve.search.meaning import Meanings
from serve.search.own_encoder import FAILED_SECONDS, LOAD_SECONDS, OwnEncoder
from serve.search.query import read_query
from serve.search.served_encoder import BATCH, ServedEncoder
from serve.search.space import PROBE, Space
from tests.serve.search_world import (
    Clock,
    Ready,
    WordVectors,
    leave_run,
    record,
    search_world,
    vector_of,
)


def served(weights: Sequence[int]) -> ServedEncoder:
    """A model whose requests are answered by processes of these weights, in turn."""
    asked: list[int] = []

    async def answer(endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        by = weights[len(asked) % len(weights)]
        asked.append(by)
        data = [
            {
                "object": "embedding",
                "index": n,
                "embedding": base64.b64encode(vector_of(text, by).astype("<f4").tobytes()).decode(),
            }
            for n, text in enumerate(body["input"])
        ]
        return orjson.dumps({"object": "list", "data": data, "model": "m", "usage": {}})

    return ServedEncoder("m", "m", answer, Ready())


async def test_an_answer_of_two_models_is_none() -> None:
    texts = [f"text number {n}" for n in range(2 * BATCH)]
    vectors, probe = await served([3]).encode(texts, 10)
    np.testing.assert_array_equal(probe, vector_of(PROBE, 3))
    np.testing.assert_allclose(vectors, [vector_of(text, 3) for text in texts], atol=1e-3)
    with pytest.raises(Unavailable, match="replaced"):
        await served([3, 4]).encode(texts, 10)


async def test_a_model_that_never_answers_is_given_up_in_time() -> None:
    async def silent(endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        await asyncio.Event().wait()
        return b""

    ready = Ready()
    with pytest.raises(TimeoutError):
        await ServedEncoder("m", "m", silent, ready).encode(["x"], 0.01)
    assert ready.lost_ones == ["m"]


async def test_words_do_not_wait_for_a_model_that_is_being_loaded(tmp_path: Path) -> None:
    class Loading(WordVectors):
        """The first process of it is not there yet, so that whoever asks waits for ever."""

        loading = False

        async def ready(self, seconds: float) -> None:
            if self.loading:
                raise ModelNotLoaded("of a host")

        async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
            while self.loading:
                await asyncio.Event().wait()
            return await super().encode(texts, seconds)

    records = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]
    leave_run(tmp_path / "2026-03-10", records)
    vectors = Loading()
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        await world.follow()
        vectors.loading = True
        async with asyncio.timeout(60):
            answer = await world.answer(query="stuck")
        assert (answer["meaning"], answer["hits"][0]["id"]) == ("unavailable", "r-2")
        assert "could not be loaded" in answer["meaning_reason"]
        assert "host" not in answer["meaning_reason"]


async def test_a_bundled_model_that_cannot_be_loaded_is_told_of_at_once() -> None:
    clock, loads = Clock(), []

    def load() -> Any:
        loads.append(clock.now)
        raise RuntimeError("its file is damaged")

    encoder = OwnEncoder(load, clock)
    for _ in range(3):
        for asked in (encoder.ready(60), encoder.encode(["x"], 60)):
            with pytest.raises(EmbeddingModelError, match="its file is damaged"):
                await asked
    clock.now += FAILED_SECONDS
    with pytest.raises(EmbeddingModelError) as caught:
        await encoder.ready(60)
    assert loads == [0, FAILED_SECONDS]
    assert "damaged" not in reason_of(caught.value)
    encoder.close()


async def test_a_bundled_model_that_fails_slowly_is_not_loaded_again_at_once() -> None:
    clock, loads = Clock(), []

    def load() -> Any:
        loads.append(clock.now)
        clock.now += 2 * FAILED_SECONDS
        raise RuntimeError("its file is damaged")

    encoder = OwnEncoder(load, clock)
    for _ in range(3):
        with pytest.raises(EmbeddingModelError):
            await encoder.encode(["x"], 60)
    assert loads == [0]
    encoder.close()


async def test_waiting_for_the_model_and_asking_it_share_one_deadline() -> None:
    clock, given = Clock(), []

    class Slow(WordVectors):
        """Is ready after some seconds."""

        async def ready(self, seconds: float) -> None:
            clock.now += 4

        async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
            given.append(seconds)
            return await super().encode(texts, 60)

    meanings = Meanings(Slow(), lambda probe: None, clock)
    for query in ("refund", "parcel"):
        assert (await meanings.of(read_query({"query": query}), Space("words"), 5)).told == "used"
    assert given == [1, 1]


async def test_a_bundled_model_that_is_being_loaded_is_waited_for_once() -> None:
    class Model:
        """A loaded model."""

        dim = 64

        def encode(self, texts: Sequence[str]) -> Any:
            return np.stack([vector_of(text) for text in texts]).astype(np.float32)

    loaded, clock = threading.Event(), Clock()

    def load() -> Any:
        loaded.wait(60)
        return Model()

    encoder = OwnEncoder(load, clock)
    first = asyncio.create_task(encoder.ready(60))
    await asyncio.sleep(0)
    clock.now = LOAD_SECONDS
    with pytest.raises(TimeoutError):
        await encoder.ready(60)
    loaded.set()
    await first
    await encoder.ready(0)
    vectors, probe = await encoder.encode(["the refund"], 60)
    np.testing.assert_array_equal(vectors, [vector_of("the refund")])
    np.testing.assert_array_equal(probe, vector_of(PROBE))
    encoder.close()
