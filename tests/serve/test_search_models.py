"""Models that are not there, are still loaded, or have other weights than they had."""

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
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.errors import Unavailable
from serve.embedder import EmbeddingModelError
from serve.models.errors import ModelNotLoaded
from serve.search.embedding import Encoded, reason_of
from serve.search.errors import NoMeaning
from serve.search.meaning import Meanings
from serve.search.own_encoder import FAILED_SECONDS, LOAD_SECONDS, OwnEncoder
from serve.search.query import read_query
from serve.search.served_encoder import BATCH, ServedEncoder
from serve.search.space import PROBE, Space, space_of
from tests.serve.search_world import (
    Clock,
    Ready,
    WordVectors,
    leave_run,
    record,
    search_world,
    vector_of,
)

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


async def test_vectors_of_other_weights_under_the_same_name_are_made_anew(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    other = WordVectors(weights=7)
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=other) as world:
        await world.server.refresh()
        answer = await world.answer(query="stuck parcel")
        assert (answer["meaning"], answer["hits"][0]["id"]) == ("unavailable", "r-2")
        assert "other weights" in answer["meaning_reason"]
        with pytest.raises(NoMeaning, match="other weights"):
            await world.answer(query="stuck parcel", mode="meaning")
        await world.follow()
        answer = await world.answer(query="stuck parcel", mode="meaning")
        assert (answer["meaning"], answer["meaning_reason"]) == ("used", None)
        assert answer["hits"][0]["id"] == "r-2"
        assert answer["searched"]["embedded"] == 2
        assert set(other.asked) >= {"the refund is late", "the parcel is stuck"}


async def test_weights_that_change_while_all_is_running_are_noticed(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert (await world.answer(query="parcel"))["meaning"] == "used"
        world.vectors.weights = 7
        # By a run that comes: none of the vectors that were there is compared with its own.
        leave_run(tmp_path / "2026-03-11", [record("r-3", "another parcel")])
        await world.follow()
        found = await world.hits(query="any parcel", mode="meaning", limit=2)
        assert set(found) == {"r-2", "r-3"}
        assert (await world.answer(query="any parcel"))["searched"]["embedded"] == 3
        # Where nothing comes, by a query.
        world.vectors.weights = 9
        await world.follow()
        assert (await world.answer(query="which parcel"))["meaning"] == "unavailable"
        await world.follow()
        assert (await world.answer(query="which parcel"))["meaning"] == "used"


async def test_while_the_model_is_away_vectors_that_there_are_serve_another_run(
    tmp_path: Path,
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        await world.hits(query="stuck parcel")
        world.vectors.away = True
        leave_run(tmp_path / "2026-03-11", FIRST)
        world.indexer.look()
        assert await world.indexer.embed(10)
        assert not await world.indexer.embed(10)
        await world.server.refresh()
        assert world.indexer.behind == 0
        answer = await world.answer(query="stuck parcel", mode="meaning", limit=2)
        assert [hit["id"] for hit in answer["hits"]] == ["r-2", "r-2"]


async def test_a_model_is_let_alone_where_nothing_is_to_be_embedded(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    vectors = WordVectors()
    vectors.away = True  # is an error to whoever asks
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        await world.follow()
        world.clock.now += 24 * 3600
        await world.follow()


async def test_with_the_weights_of_before_nothing_is_embedded_again(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    for weights, asked in ((0, 2), (7, 2), (0, 0)):
        vectors = WordVectors(weights)
        async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
            await world.follow()
            await world.hits(query="which weights")
            await world.follow()
            assert len(vectors.asked) == asked + 1
            found = await world.hits(query="stuck parcel", mode="meaning", limit=1)
            assert found == ["r-2"]


async def test_what_whose_vectors_there_are_is_found_again_without_the_catalog(
    tmp_path: Path,
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (world.state / "index.json").unlink()
    again = WordVectors()
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=again) as world:
        await world.follow()
        assert again.asked == []
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]


@given(st.integers(0, 1000), st.floats(0, 0.004))
def test_rounding_is_no_other_model_and_other_weights_are(seed: int, noise: float) -> None:
    probe = vector_of(PROBE)
    space = Space("m", tuple(probe.astype(float).tolist()))
    rng = np.random.default_rng(seed)
    rounded = probe.astype(np.float64) + noise * rng.standard_normal(len(probe))
    assert space.has((rounded / np.linalg.norm(rounded)).astype(np.float16))
    assert not space.has(vector_of(PROBE, weights=1 + seed))
    assert not space.has(probe[:32])


def test_a_damaged_note_of_a_model_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    made = space_of(tmp_path, "m", vector_of(PROBE))
    assert space_of(tmp_path, "m", vector_of(PROBE)) == made
    assert space_of(tmp_path, "another", vector_of(PROBE)).id != made.id
    for file in (tmp_path / "models").iterdir():
        file.write_text("{")
    assert space_of(tmp_path, "m", vector_of(PROBE)) == made


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

    leave_run(tmp_path / "2026-03-10", FIRST)
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
