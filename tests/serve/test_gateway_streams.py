"""Streams of providers as they pass through the gateway, and however they end."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import orjson
import pytest
from aiohttp import web

from serve.ask.contract import Usage
from serve.gateway.errors import BadRequest, ProviderFailed, ProviderRateLimited
from serve.gateway.events import DONE, MOST_EVENT
from tests.serve.upstream_world import (
    COUNT,
    GOOD,
    KEY,
    KEY_ENV,
    PIECES,
    Fake,
    World,
    answering,
    chunk,
    error_body,
    events_of,
    hang,
    lose,
    streaming,
    world,
)

WHOLE = streaming(*PIECES, COUNT, DONE)
WITHOUT_COUNT = [piece.replace(b',"usage":null', b"") for piece in PIECES]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


async def test_a_stream_passes_through_and_its_count_is_kept() -> None:
    fake = Fake([WHOLE])
    async with world(fake, prices={"input": 2, "output": 3}) as made:
        stream = await made.stream()
        assert stream.about.first_byte is not None
        assert await events_of(stream) == [*WITHOUT_COUNT, DONE]
    about = stream.about
    assert fake.seen[0]["stream_options"] == {"include_usage": True}
    assert about.usage == Usage(7, 2)
    assert str(about.cost) == "0.00002"
    assert about.finish_reason == "stop"
    assert about.last_byte is not None


async def test_an_empty_piece_is_no_first_token() -> None:
    empty = chunk("")
    fake = Fake([streaming(empty, DONE), streaming(empty, *PIECES, DONE)])
    async with world(fake) as made:
        for first_token in (False, True):
            stream = await made.stream()
            await events_of(stream)
            assert (stream.about.first_token is not None) == first_token


async def test_the_count_is_sent_on_where_the_client_asked_for_it() -> None:
    options = {"stream_options": {"include_usage": True, "include_obfuscation": False}}
    fake = Fake([WHOLE])
    async with world(fake) as made:
        assert await events_of(await made.stream(options)) == [*PIECES, COUNT, DONE]
    assert fake.seen[0]["stream_options"] == options["stream_options"]


async def test_a_stream_is_not_held_back() -> None:
    """Each piece is there before the next one is sent."""
    go_on = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in (*PIECES, DONE):
            await response.write(b"data: " + piece + b"\n\n")
            await go_on.wait()
            go_on.clear()
        return response

    async with world(Fake([slowly])) as made:
        stream = await made.stream()
        for piece in (*WITHOUT_COUNT, DONE):
            assert await anext(aiter(stream.events)) == b"data: " + piece + b"\n\n"
            go_on.set()


async def test_the_connection_of_a_stream_that_has_ended_is_used_again() -> None:
    ports: list[object] = []

    async def noting(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername"))
        return await WHOLE(request)

    async with world(Fake([noting])) as made:
        for _ in range(3):
            await events_of(await made.stream())
    assert len(set(ports)) == 1


async def broken(made: World, **more: Any) -> tuple[list[bytes], str]:
    """What a stream sends before the event that tells of its failure, and the code in that."""
    *before, last = await events_of(stream := await made.stream(**more))
    assert stream.about.usage is None
    error = orjson.loads(last)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert KEY not in error["message"]
    return before, error["code"]


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (streaming(*PIECES, COUNT, then=lose), "provider_unavailable"),
        (streaming(*PIECES, COUNT), "provider_unavailable"),
        (streaming(*PIECES, b"<html>"), "provider_failed"),
        (streaming(*PIECES, b'{"choices":[{"delta":'), "provider_failed"),
        (streaming(*PIECES, raw=b'data: {"choices":[{"delta":'), "provider_unavailable"),
        (streaming(*PIECES, orjson.dumps(error_body(f"for {KEY}"))), "provider_failed"),
        (streaming(*PIECES, orjson.dumps(error_body("busy", "503"))), "provider_failed"),
        (streaming(*PIECES, raw=b"data: " + b"x" * (MOST_EVENT + 1)), "provider_failed"),
    ],
)
async def test_a_stream_that_breaks_says_so_and_ends(handler: object, code: str) -> None:
    fake = Fake([handler])  # type: ignore[list-item]
    async with world(fake) as made:
        before, told = await broken(made)
    assert before == WITHOUT_COUNT
    assert told == code
    assert len(fake.seen) == 1, "it is not asked again"


async def test_a_stream_that_stalls_ends_at_the_timeout() -> None:
    fake = Fake([streaming(*PIECES, then=hang)])
    async with world(fake) as made:
        before, code = await broken(made, timeout=0.6)
        assert (before, code) == (WITHOUT_COUNT, "provider_timed_out")
        await asyncio.wait_for(fake.left.wait(), 60)


async def test_what_goes_wrong_before_the_first_event_is_a_status() -> None:
    slow_down = orjson.dumps(error_body("slow down", "429"))
    refused = answering(400, error_body("no", "bad", "messages"))
    for handler, kind in (
        (streaming(b"<html>"), ProviderFailed),
        (streaming(orjson.dumps(error_body("odd"))), ProviderFailed),
        (answering(200, b"<html>", {"content-type": "text/html"}), ProviderFailed),
        (refused, BadRequest),
    ):
        async with world(Fake([handler])) as made:
            with pytest.raises(kind):
                await made.stream()
    fake = Fake([streaming(), WHOLE])
    async with world(fake) as made:
        # A stream without any event is asked for again.
        assert (await events_of(await made.stream()))[-1] == DONE
        assert len(fake.seen) == 2
    async with world(Fake([streaming(slow_down, headers={"retry-after": "9"})])) as made:
        with pytest.raises(ProviderRateLimited):
            await made.stream()


@pytest.mark.parametrize("read", [0, 1])
async def test_a_stream_that_is_closed_closes_the_one_behind_it(read: int) -> None:
    fake = Fake([streaming(*PIECES, then=hang)])
    async with world(fake) as made:
        stream = await made.stream()
        for _ in range(read):
            await anext(aiter(stream.events))
        await stream.aclose()
        assert await made.in_use() == 0
        await asyncio.wait_for(fake.left.wait(), 60)
        assert await events_of(stream) == []


async def test_who_is_cancelled_while_waiting_for_an_event_closes_the_stream() -> None:
    fake = Fake([streaming(*PIECES, then=hang)])
    async with world(fake) as made:
        stream = await made.stream()
        for _ in PIECES:
            await anext(aiter(stream.events))
        reading = asyncio.ensure_future(events_of(stream))
        await asyncio.sleep(0)  # it waits now
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await made.in_use() == 0
        await asyncio.wait_for(fake.left.wait(), 60)


async def test_a_client_that_does_not_read_holds_up_the_provider_and_no_memory() -> None:
    text, pieces = "x" * 10_000, 4_000

    async def flood(request: web.Request) -> web.StreamResponse:
        return await streaming(*[chunk(text)] * pieces, DONE)(request)

    fake = Fake([flood])
    async with world(fake) as made:
        tracemalloc.start()
        stream = await made.stream(timeout=2)
        await anext(aiter(stream.events))
        await asyncio.wait_for(fake.left.wait(), 60)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        last = (await events_of(stream))[-1]
    assert most < len(text) * pieces / 4
    assert orjson.loads(last)["error"]["code"] == "provider_timed_out"


async def test_a_provider_that_does_not_know_stream_options_is_asked_without_and_once() -> None:
    refusal = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs not permitted"}]}
    fake = Fake([answering(422, refusal), streaming(*PIECES, DONE)])
    async with world(fake) as made:
        for _ in range(2):
            stream = await made.stream()
            assert (await events_of(stream))[-1] == DONE
            assert stream.about.usage is None
            assert stream.about.cost is None
        assert ["stream_options" in body for body in fake.seen] == [True, False, False]
        fake.script.insert(0, answering(422, refusal))
        with pytest.raises(BadRequest):
            await made.stream({"stream_options": {"include_usage": True}})


async def test_a_provider_that_does_not_stream_is_made_to() -> None:
    async with world(Fake([answering(200, GOOD)])) as made:
        stream = await made.stream()
        *chunks, last = await events_of(stream)
    said = [orjson.loads(each)["choices"][0]["delta"].get("content") for each in chunks]
    assert ("".join(filter(None, said)), last) == ("hi", DONE)
    assert stream.about.usage == Usage(7, 2)


async def test_counts_that_come_with_the_last_piece_stay_in_it() -> None:
    last = orjson.loads(chunk(finish_reason="length"))
    last["usage"] = {"prompt_tokens": 7, "completion_tokens": 2}
    async with world(Fake([streaming(chunk("a"), orjson.dumps(last), DONE)])) as made:
        stream = await made.stream()
        events = await events_of(stream)
    assert orjson.loads(events[1]) == last
    assert (stream.about.usage, stream.about.finish_reason) == (Usage(7, 2), "length")
