"""A model's server: whole answers, streams, its queue, its deadlines, and clients that leave."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any

import orjson
import pytest

from serve.ask.errors import ContextOverflow, Refused, TimedOut, Unavailable
from serve.generation.server import GenerationServer
from serve.models.errors import ModelBusy
from tests.serve.generation_world import FakeForward, body, server, until, written

CHAT = "chat/completions"


def _text(prompt: str, count: int) -> str:
    return "".join(map(chr, written([ord(c) for c in prompt], count)))


async def _events(asked: GenerationServer, **more: Any) -> list[Any]:
    chunks = asked.stream(CHAT, body("hello", stream=True, **more), 60)
    return [orjson.loads(chunk) async for chunk in chunks]


async def test_a_whole_answer_says_what_it_is_and_what_it_cost() -> None:
    asked = server(FakeForward())
    answer = orjson.loads(await asked.answer(CHAT, body("hello", max_tokens=6), 60))
    choice = answer["choices"][0]
    assert (answer["object"], answer["model"]) == ("chat.completion", "fake")
    assert choice["message"]["content"] == _text("hello", 6)
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] == 11
    await asked.aclose()


async def test_a_stream_says_the_same_token_by_token() -> None:
    asked = server(FakeForward())
    events = await _events(asked, max_tokens=6, stream_options={"include_usage": True})
    deltas = [each["choices"][0]["delta"] for each in events[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [delta["content"] for delta in deltas[1:-1]] == list(_text("hello", 6))
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 6
    assert len({each["id"] for each in events}) == 1
    await asked.aclose()


async def test_an_answer_ends_before_a_stop_string() -> None:
    asked = server(FakeForward())
    text = _text("hello", 9)
    events = await _events(asked, max_tokens=9, stop=text[3:6])
    shown = "".join(each["choices"][0]["delta"].get("content", "") for each in events)
    assert shown == text[: text.index(text[3:6])]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    await asked.aclose()


async def test_logprobs_come_with_their_tokens() -> None:
    asked = server(FakeForward())
    more = {"logprobs": True, "top_logprobs": 2, "max_tokens": 3}
    answer = orjson.loads(await asked.answer(CHAT, body("hello", **more), 60))
    content = answer["choices"][0]["logprobs"]["content"]
    assert "".join(each["token"] for each in content) == _text("hello", 3)
    assert [len(each["top_logprobs"]) for each in content] == [2, 2, 2]
    await asked.aclose()


@pytest.mark.parametrize("stop", [slice(3, 6), slice(0, 2)])
async def test_tokens_of_a_stop_string_are_not_told_either(stop: slice) -> None:
    asked = server(FakeForward())
    text = _text("hello", 9)
    more = {"logprobs": True, "top_logprobs": 1, "max_tokens": 9, "stop": text[stop]}
    answer = orjson.loads(await asked.answer(CHAT, body("hello", **more), 60))
    choice = answer["choices"][0]
    told = "".join(each["token"] for each in choice["logprobs"]["content"])
    assert told == choice["message"]["content"] == text[: text.index(text[stop])]
    events = await _events(asked, **more)
    streamed = [
        each["token"]
        for event in events
        for each in (event["choices"][0]["logprobs"] or {"content": []})["content"]
    ]
    assert "".join(streamed) == told
    await asked.aclose()


async def test_the_tokens_of_a_stop_string_that_did_not_come_are_told() -> None:
    asked = server(FakeForward())
    text = _text("hello", 9)
    more = {"logprobs": True, "max_tokens": 9, "stop": [text[2:4] + "~", text[7:] + "~"]}
    answer = orjson.loads(await asked.answer(CHAT, body("hello", **more), 60))
    told = "".join(each["token"] for each in answer["choices"][0]["logprobs"]["content"])
    assert told == answer["choices"][0]["message"]["content"] == text
    await asked.aclose()


async def test_what_does_not_fit_is_refused_as_openai_does() -> None:
    asked = server(FakeForward(context=64))
    with pytest.raises(ContextOverflow) as caught:
        await asked.answer(CHAT, body("a" * 60, max_tokens=5), 60)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(ContextOverflow):
        await asked.answer(CHAT, body("a" * 64), 60)
    with pytest.raises(Refused):
        await asked.answer("embeddings", {"model": "fake", "input": "a"}, 60)
    answer = orjson.loads(await asked.answer(CHAT, body("a" * 60), 60))
    assert answer["usage"]["completion_tokens"] == 4
    await asked.aclose()


async def test_more_than_the_queue_holds_are_turned_away_and_the_others_answered() -> None:
    forward = FakeForward(slots=1)
    forward.gate = threading.Semaphore(0)
    asked = server(forward, queue=2)
    calls = [
        asyncio.create_task(asked.answer(CHAT, body(f"{i}", max_tokens=2), 60)) for i in range(3)
    ]
    await until(lambda: asked.numbers()["queue"] + asked.numbers()["running"] == 3)
    with pytest.raises(ModelBusy) as caught:
        await asked.answer(CHAT, body("one too many"), 60)
    assert (caught.value.status, caught.value.retry_after) == (503, 1.0)
    forward.gate.release(100)
    assert len(await asyncio.gather(*calls)) == 3
    assert asked.numbers()["queue"] == 0
    await asked.aclose()


async def test_nobody_waits_longer_than_the_seconds_of_the_call() -> None:
    forward = FakeForward(slots=1)
    forward.gate = threading.Semaphore(0)
    asked = server(forward)
    with pytest.raises(TimedOut):
        await asked.answer(CHAT, body("late"), 0.01)
    forward.gate.release(100)
    assert await asked.answer(CHAT, body("in time", max_tokens=1), 60)
    await asked.aclose()


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_frees_its_slot_at_the_next_step(streamed: bool) -> None:
    forward = FakeForward(slots=1)
    forward.gate = threading.Semaphore(1)
    asked = server(forward)
    if streamed:
        chunks = asked.stream(CHAT, body("long", max_tokens=200), 60)
        await anext(chunks)
        await chunks.aclose()
    else:
        call = asyncio.create_task(asked.answer(CHAT, body("long", max_tokens=200), 60))
        await until(lambda: forward.plans)
        call.cancel()
        await asyncio.wait([call])
    other = asyncio.create_task(asked.answer(CHAT, body("next", max_tokens=1), 60))
    await until(lambda: asked.numbers()["queue"] + asked.numbers()["running"] == 1)
    # One step may have begun before; the one after it is the other's.
    forward.gate.release(2)
    answer = orjson.loads(await other)
    assert answer["choices"][0]["message"]["content"] == _text("next", 1)
    await asked.aclose()


async def test_a_broken_model_tells_its_clients_and_its_health() -> None:
    forward = FakeForward()
    forward.error = RuntimeError("CUDA error: unspecified launch failure")
    asked = server(forward)
    asked.check_health()
    with pytest.raises(Exception, match="the model broke"):
        await asked.answer(CHAT, body("a"), 60)
    with pytest.raises(RuntimeError, match="CUDA"):
        asked.check_health()
    # What it would say now may be wrong: it says nothing.
    forward.error = None
    with pytest.raises(Exception, match="the model broke"):
        await asked.answer(CHAT, body("a"), 60)
    assert not forward.plans
    await asked.aclose()


@pytest.mark.parametrize("broken", [False, True])
async def test_a_model_that_is_let_go_of_is_out_of_memory(broken: bool) -> None:
    forward = FakeForward()
    forward.error = RuntimeError("CUDA error") if broken else None
    asked, there = server(forward), weakref.ref(forward)
    with contextlib.suppress(Unavailable):
        await asked.answer(CHAT, body("a", max_tokens=2), 60)
    del forward
    await asked.aclose()
    assert there() is None
    with pytest.raises(Unavailable, match="let go of"):
        await asked.answer(CHAT, body("a"), 60)
