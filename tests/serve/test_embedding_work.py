"""What `EmbeddingServer` computes, and for whom: queue, time, batches that break, health."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from serve.ask.errors import AskError, Refused, TimedOut, Unavailable
from serve.embedding.computing import FAILED_IN_A_ROW
from serve.embedding.server import EmbeddingServer
from serve.models.errors import ModelBusy
from serve.models.numbers import BATCH_SIZE, CACHE_USE, QUEUE, RUNNING, TOKENS_PER_SECOND
from tests.serve.embedding_world import FakeEngine, ask, near, server, vectors


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


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


async def test_what_is_kept_while_texts_are_counted_is_not_computed_again(
    engine: FakeEngine,
) -> None:
    async with server(engine) as of:
        engine.open.clear()
        engine.entered.clear()
        first = asyncio.create_task(ask(of, LONG))
        await asyncio.to_thread(engine.entered.wait)
        engine.countable.clear()
        engine.counting.clear()
        second = asyncio.create_task(ask(of, LONG))
        await asyncio.to_thread(engine.counting.wait)
        engine.open.set()
        assert await first
        engine.countable.set()
        assert await second == await first
    assert sorted(engine.computed) == sorted(LONG)


async def test_what_is_computed_of_a_request_that_ends_early_is_kept(engine: FakeEngine) -> None:
    """Also what had begun, which whoever asks meanwhile waits for."""
    texts = [f"{number} one two three four five six seven" for number in range(96)]
    engine.held = "40"
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
        texts = ("a", "b poison", "c")
        asked = [asyncio.create_task(ask(of, text)) for text in texts]
        await asyncio.sleep(0)
        engine.open.set()
        first, second, third = await asyncio.gather(*asked, return_exceptions=True)
        await blocker
        of.check_health()
    assert set(texts) in map(set, engine.batches)
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


async def test_a_full_queue_is_busy(engine: FakeEngine) -> None:
    async with server(engine, queue=1) as of:
        running = await begun(of, engine, "running")
        waiting = asyncio.create_task(ask(of, "waiting"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert dict(of.numbers()) | {QUEUE: 1, RUNNING: 1} == dict(of.numbers())
        counted = engine.counted
        with pytest.raises(ModelBusy) as told:
            await ask(of, "more")
        assert engine.counted == counted
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


LONG = [f"{number} {'x' * 200}" for number in range(30)]
"""Texts that are read and counted in a thread."""


async def test_who_waits_for_their_texts_to_be_counted_waits_in_the_queue(
    engine: FakeEngine,
) -> None:
    async with server(engine, queue=1) as of:
        engine.countable.clear()
        tasks = [
            asyncio.create_task(ask(of, [f"{text} {number}" for text in LONG]))
            for number in range(3)
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert [type(task.exception()) for task in done] == [ModelBusy]
        assert of.numbers()[QUEUE] == 2
        engine.countable.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(each, dict) for each in found) == 2


async def test_the_time_to_count_texts_is_the_requests_own(engine: FakeEngine) -> None:
    async with server(engine) as of:
        engine.countable.clear()
        with pytest.raises(TimedOut):
            await ask(of, LONG, seconds=0.01)
        assert of.numbers()[QUEUE] == 0
    assert not engine.computed


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
