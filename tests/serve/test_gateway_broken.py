"""Answers that are none: errors in another form than OpenAI's, and connections that break."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from aiohttp import web

from serve.gateway.connection import Connection
from serve.gateway.errors import BadRequest, ProviderFailed
from tests.serve.upstream_world import (
    GOOD,
    KEY,
    KEY_ENV,
    PIECES,
    Fake,
    Handler,
    answering,
    error_body,
    events_of,
    lose,
    streaming,
    world,
)

NO_PIECES: list[Any] = [
    {"message": "overloaded", "type": "overloaded_error"},
    {"type": "ping"},
    {"choices": None},
    {**error_body("overloaded"), "choices": []},
    {**error_body("overloaded"), "choices": [{"delta": {}, "finish_reason": "error"}]},
    {"finish_reason": None},
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.mark.parametrize("payload", NO_PIECES)
async def test_what_is_no_piece_of_an_answer_is_an_error(payload: Any) -> None:
    raw = b"event: error\ndata: " + orjson.dumps(payload) + b"\n\ndata: [DONE]\n\n"
    async with world(Fake([streaming(*PIECES, raw=raw)])) as made:
        *_, last = await events_of(await made.stream())
        assert orjson.loads(last)["error"]["code"] == "provider_failed"
    async with world(Fake([streaming(raw=raw)])) as made:
        with pytest.raises(ProviderFailed):
            await made.stream()


async def test_an_error_without_an_envelope_is_told_in_the_providers_words() -> None:
    bare = orjson.dumps({"message": "all is full", "type": "x"})
    async with world(Fake([streaming(bare)]), Fake([answering(200, bare)])) as made:
        with pytest.raises(ProviderFailed, match="all is full"):
            await made.stream()


@pytest.mark.parametrize("body", [b" ", b'{"error": {"message": " "}}'])
async def test_a_refusal_without_a_word_does_not_show_where_it_came_from(body: bytes) -> None:
    async with world(Fake([answering(400, body)])) as made:
        with pytest.raises(BadRequest) as caught:
            await made.ask()
    assert "127.0.0.1" not in caught.value.message
    assert "p0/m" in caught.value.message


async def test_a_stream_that_began_is_not_asked_for_again() -> None:
    first, second = Fake([streaming(raw=b": wait\n\n", then=lose)]), Fake([answering()])
    async with world(first, second) as made:
        with pytest.raises(ProviderFailed):
            await made.stream()
    assert (len(first.seen), len(second.seen)) == (1, 0)


def no_chunk(content_type: str, body: bytes) -> Handler:
    """Sends what is no chunk after `body`, and keeps the connection."""

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n"
        request.transport.write(head.encode() + b"\r\n")
        chunk = b"%x\r\n%b\r\n" % (len(body), body)
        request.transport.write(chunk)
        await asyncio.sleep(0.05)
        request.transport.write(b"no length\r\n")
        await asyncio.Event().wait()
        raise AssertionError

    return handler


async def test_what_is_no_chunk_ends_an_answer_at_once() -> None:
    stream = no_chunk("text/event-stream", b"data: " + PIECES[0] + b"\n\n")
    whole = no_chunk("application/json", orjson.dumps(GOOD)[:9])
    async with asyncio.timeout(60):
        async with world(Fake([stream])) as made:
            *_, last = await events_of(await made.stream(timeout=600))
            assert orjson.loads(last)["error"]["code"] == "provider_unavailable"
        async with world(Fake([whole])) as made:
            with pytest.raises(ProviderFailed):
                await made.ask(timeout=600)


async def test_nothing_is_kept_of_connections_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    made_ones: list[Connection] = []
    init = Connection.__init__

    def noted(self: Connection, *given: Any) -> None:
        made_ones.append(self)
        init(self, *given)

    monkeypatch.setattr(Connection, "__init__", noted)

    async with world(Fake([streaming(*PIECES, then=lose)])) as made:
        for _ in range(3):
            await events_of(await made.stream())
        assert await made.in_use() == 0
    await asyncio.sleep(0)
    assert [len(each._answers) for each in made_ones] == [0]
