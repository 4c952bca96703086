"""`EmbeddingServer` before a model that does as it is told: what a client gets, and what is
computed."""

from __future__ import annotations

import asyncio
import base64
import pickle
from typing import Any

import numpy as np
import pytest

from serve.ask.errors import AskError, ContextOverflow, Refused, TimedOut, Unavailable
from serve.embedding.computing import FAILED_IN_A_ROW
from serve.embedding.server import EmbeddingServer
from serve.models.errors import ModelBusy
from serve.models.numbers import BATCH_SIZE, CACHE_USE, QUEUE, RUNNING, TOKENS_PER_SECOND
from tests.serve.embedding_world import DIM, FakeEngine, ask, server, vector_of, vectors


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def near(found: Any, text: str) -> bool:
    return bool(np.allclose(found, vector_of(text), atol=1e-6))


async def test_an_answer_is_openais(engine: FakeEngine) -> None:
    async with server(engine) as of:
        answer = await ask(of, ["b b", "a", "b b"])
    assert answer["object"] == "list"
    assert answer["model"] == "fake"
    assert answer["usage"] == {"prompt_tokens": 5, "total_tokens": 5}
    assert [(item["object"], item["index"]) for item in answer["data"]] == [
        ("embedding", place) for place in range(3)
    ]
    for item, text in zip(answer["data"], ["b b", "a", "b b"], strict=True):
        assert near(item["embedding"], text)


async def test_floats_and_base64_are_the_same_float32(engine: FakeEngine) -> None:
    async with server(engine) as of:
        (floats,) = await vectors(of, "a")
        (coded,) = await vectors(of, "a", encoding_format="base64")
    decoded = np.frombuffer(base64.b64decode(str(coded)), dtype="<f4")
    assert np.array_equal(decoded, np.array(floats, dtype=np.float32))


async def test_dimensions_cut_the_vector_and_bring_it_to_length_one(engine: FakeEngine) -> None:
    async with server(engine) as of:
        ((first, second),) = await vectors(of, "a", dimensions=2)
    whole = vector_of("a")[:2]
    assert np.allclose([first, second], whole / np.linalg.norm(whole), atol=1e-6)


async def test_token_numbers_are_read_as_openais(engine: FakeEngine) -> None:
    async with server(engine) as of:
        (one,) = await vectors(of, [9906, 1917])
        two = await vectors(of, [[9906, 1917], [9906]])
    assert near(one, "Hello world")
    assert near(two[0], "Hello world")
    assert near(two[1], "Hello")


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"input": ""}, "input", "empty_input"),
        ({"input": []}, "input", "empty_input"),
        ({"input": ["a", ""]}, "input[1]", "empty_input"),
        ({"input": [[1], []]}, "input[1]", "empty_input"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": ["a", 5]}, "input[1]", "invalid_type"),
        ({}, "input", "missing_required_parameter"),
        ({"input": ["a"] * 2049}, "input", "array_above_max_length"),
        ({"input": [10**9]}, "input", "invalid_token"),
        ({"input": [[1], [-1]]}, "input[1]", "invalid_token"),
        ({"input": "a", "dimensions": 0}, "dimensions", "integer_below_min_value"),
        ({"input": "a", "dimensions": DIM + 1}, "dimensions", "integer_above_max_value"),
        ({"input": "a", "dimensions": True}, "dimensions", "invalid_type"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "invalid_value"),
        ({"input": "a", "truncate": "yes"}, "truncate", "invalid_type"),
    ],
)
async def test_a_bad_request_is_refused_by_the_field(
    engine: FakeEngine, body: dict[str, Any], param: str, code: str
) -> None:
    async with server(engine) as of:
        with pytest.raises(Refused) as told:
            await of.answer("embeddings", {"model": "fake", **body}, 5.0)
    error = pickle.loads(pickle.dumps(told.value))  # noqa: S301 as between processes
    assert (error.status, error.param, error.code) == (400, param, code)
    assert param in error.said
    assert not engine.computed


@pytest.mark.parametrize("text", ["w " * 9, "x" * 10_000_000, "w " * 10_000_000])
async def test_an_over_long_text_is_refused_unless_it_may_be_cut(
    engine: FakeEngine, text: str
) -> None:
    async with server(engine) as of:
        with pytest.raises(ContextOverflow) as told:
            await ask(of, ["a", text])
        answer = await ask(of, ["a", text], truncate=True)
        # What was cut is kept as what it was: over-long.
        with pytest.raises(ContextOverflow):
            await ask(of, text)
    assert (told.value.status, told.value.param) == (400, "input[1]")
    assert "truncate" in told.value.said
    assert answer["usage"]["prompt_tokens"] <= 1 + engine.most_tokens
    assert max(len(text.split()) for text in engine.computed) <= engine.most_tokens


async def test_neither_chats_nor_streams_are_answered(engine: FakeEngine) -> None:
    async with server(engine) as of:
        with pytest.raises(Refused, match="vectors"):
            await of.answer("chat/completions", {"model": "fake", "messages": []}, 5.0)
        with pytest.raises(Refused, match="vectors"):
            await anext(of.stream("embeddings", {"model": "fake", "input": "a"}, 5.0))


async def test_equal_texts_are_computed_once(engine: FakeEngine) -> None:
    async with server(engine) as of:
        await ask(of, ["a", "b", "a"])
        await ask(of, ["b", "c"])
    assert sorted(engine.computed) == ["a", "b", "c"]


async def test_a_text_that_is_being_computed_is_shared(engine: FakeEngine) -> None:
    async with server(engine) as of:
        first = await begun(of, engine, "a")
        second = asyncio.create_task(vectors(of, ["a", "b"]))
        await asyncio.sleep(0)
        engine.open.set()
        assert near((await first)[0], "a")
        assert near((await second)[0], "a")
    assert sorted(engine.computed) == ["a", "b"]


async def begun(of: Any, engine: FakeEngine, text: str) -> asyncio.Task[list[list[float]]]:
    """A request that is being computed until `engine.open` is set."""
    engine.open.clear()
    engine.entered.clear()
    task = asyncio.create_task(vectors(of, text))
    await asyncio.to_thread(engine.entered.wait)
    return task


async def test_whoever_leaves_takes_nothing_from_who_shares(engine: FakeEngine) -> None:
    async with server(engine) as of:
        blocker = await begun(of, engine, "blocker")
        leaving = asyncio.create_task(vectors(of, ["shared", "own"]))
        staying = asyncio.create_task(vectors(of, "shared"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        engine.open.set()
        assert near((await staying)[0], "shared")
        await blocker
        assert await ask(of, "later")
    assert engine.computed == ["blocker", "shared", "later"]


async def test_what_is_computed_of_a_request_that_ends_early_is_kept(engine: FakeEngine) -> None:
    """Also what had begun, which whoever asks meanwhile waits for."""
    texts = [f"{number} one two three four five six seven" for number in range(48)]
    engine.held = "30"
    async with server(engine) as of:
        early = asyncio.create_task(ask(of, texts))
        await asyncio.to_thread(engine.holds.wait)
        done = len(engine.computed)
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early
        again = asyncio.create_task(ask(of, texts))
        await asyncio.sleep(0)
        engine.let_go.set()
        answer = await again
    assert 0 < done < len(texts)
    assert near(answer["data"][0]["embedding"], texts[0])
    assert sorted(engine.computed) == sorted(texts)


async def test_what_breaks_a_batch_breaks_its_own_request_alone(engine: FakeEngine) -> None:
    engine.broken = {"poison"}
    async with server(engine) as of:
        blocker = await begun(of, engine, "blocker")
        asked = [asyncio.create_task(ask(of, text)) for text in ("a", "b poison", "c")]
        await asyncio.sleep(0)
        engine.open.set()
        first, second, third = await asyncio.gather(*asked, return_exceptions=True)
        await blocker
        of.check_health()
    assert isinstance(first, dict)
    assert isinstance(third, dict)
    assert isinstance(second, Unavailable)
    assert second.status == 500


async def test_a_batch_that_does_not_fit_is_halved(engine: FakeEngine) -> None:
    async with server(engine) as of:
        engine.together = 2
        answer = await ask(of, list("abcdefgh"))
        assert [
            near(item["embedding"], text)
            for item, text in zip(answer["data"], "abcdefgh", strict=True)
        ] == [True] * 8
        assert max(map(len, engine.batches)) > 2
        with pytest.raises(Refused) as told:
            await ask(of, ["a", "huge", "new"])
        assert await ask(of, ["new"])
    assert (told.value.param, told.value.code) == ("input[1]", "out_of_memory")


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\ud800 alone", "\n\t ", "\u202e\ufeff", "😀" * 60], ids=ascii
)
async def test_odd_texts_have_vectors_and_harm_nobody(engine: FakeEngine, text: str) -> None:
    async with server(engine) as of:
        answer = await ask(of, ["a", text])
    assert near(answer["data"][0]["embedding"], "a")
    assert len(answer["data"]) == 2


async def test_a_full_queue_is_busy(engine: FakeEngine) -> None:
    async with server(engine, queue=1) as of:
        running = await begun(of, engine, "running")
        waiting = asyncio.create_task(ask(of, "waiting"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert dict(of.numbers()) | {QUEUE: 1, RUNNING: 1} == dict(of.numbers())
        with pytest.raises(ModelBusy) as told:
            await ask(of, "more")
        engine.open.set()
        assert await waiting
        assert await running
        assert await ask(of, ["running", "waiting"])
    assert told.value.status == 503
    assert (told.value.retry_after or 0) >= 1
    assert sorted(engine.computed) == ["running", "waiting"]


async def test_who_has_no_time_left_is_told_and_not_computed_for(engine: FakeEngine) -> None:
    async with server(engine) as of:
        running = await begun(of, engine, "running")
        with pytest.raises(TimedOut):
            await ask(of, "hasty", seconds=0.01)
        engine.open.set()
        await running
    assert engine.computed == ["running"]


async def test_a_server_that_ends_says_so(engine: FakeEngine) -> None:
    async with server(engine) as of:
        running = await begun(of, engine, "running")
        waiting = asyncio.create_task(ask(of, "waiting"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing = asyncio.create_task(of.aclose())
        with pytest.raises(Unavailable) as told:
            await waiting
        assert not engine.closed
        engine.open.set()
        await closing
        assert await running
        assert engine.closed
        with pytest.raises(Unavailable):
            await ask(of, "too late")
    assert told.value.status == 503


async def fail(of: EmbeddingServer, word: str, times: int) -> None:
    for number in range(times):
        with pytest.raises(AskError):
            await ask(of, f"{word} {number}")


async def test_a_model_that_always_fails_is_not_well(engine: FakeEngine) -> None:
    async with server(engine) as of:
        of.check_health()
        engine.broken = {"a", "fupan"}
        await fail(of, "a", FAILED_IN_A_ROW - 1)
        of.check_health()
        await fail(of, "a", FAILED_IN_A_ROW)
        with pytest.raises(RuntimeError, match="broken by fupan"):
            of.check_health()
        await ask(of, "fine")
        of.check_health()


@pytest.mark.parametrize("word", ["poison", "huge"])
async def test_no_texts_make_a_model_look_ill_that_is_well(engine: FakeEngine, word: str) -> None:
    engine.broken = {"poison"}
    async with server(engine) as of:
        await fail(of, word, 3 * FAILED_IN_A_ROW)
        of.check_health()


async def test_texts_that_do_not_fit_say_nothing_of_the_model(engine: FakeEngine) -> None:
    async with server(engine) as of:
        await fail(of, "huge", 3 * FAILED_IN_A_ROW)
    assert "fupan" not in engine.computed


async def test_short_memory_makes_small_batches(engine: FakeEngine) -> None:
    engine.used = 0.95
    async with server(engine) as of:
        for turn in range(30):
            await ask(of, [f"{turn} {number}" for number in range(engine.enough)])
        del engine.batches[:]
        await ask(of, [f"now {number}" for number in range(engine.enough)])
    assert max(map(len, engine.batches)) < engine.enough // 8


async def test_it_says_how_it_is(engine: FakeEngine) -> None:
    async with server(engine) as of:
        await ask(of, ["a", "b"])
        numbers = of.numbers()
    assert numbers[QUEUE] == numbers[RUNNING] == 0
    assert numbers[BATCH_SIZE] == 2
    assert numbers[TOKENS_PER_SECOND] > 0
    assert 0 < numbers[CACHE_USE] < 0.01
