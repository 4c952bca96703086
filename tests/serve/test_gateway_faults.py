"""What a client sees when a provider fails."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web

from serve.gateway.contract import Answered, Stream
from tests.serve.fault_world import CHAT, Setting, error, setting
from tests.serve.gateway_world import gateway_world
from tests.serve.scripted_upstream import (
    answered,
    chunk,
    completion,
    cut_off,
    refused,
    silence,
    streamed,
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Setting]:
    with setting() as made:
        yield made


@pytest.fixture
def here(shared: Setting) -> Iterator[Setting]:
    shared.upstream.begin_anew()
    shared.forget_failures()
    yield shared
    shared.idle()


@pytest.mark.parametrize("stream", [False, True])
def test_nobody_at_the_providers_url(stream: bool) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with gateway_world({"main": url}, {"timeout": 0.4}) as world:
            body = {**CHAT, "stream": stream}
            answer = httpx.post(f"{world.base_url}/chat/completions", json=body)
    assert error(answer) == (503, "provider_unavailable")


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_is_too_slow(stream: bool) -> None:
    with setting(timeout=0.5) as here:
        here.upstream.planned.append(silence)
        assert error(here.post(stream=stream)) == (504, "provider_timed_out")
        here.upstream.wait_left()
        here.idle()


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_event_has_its_status(here: Setting, stream: bool) -> None:
    here.upstream.planned.append(refused(400, "no such voice", "bad_voice"))
    assert error(here.post(stream=stream)) == (400, "bad_voice")


@pytest.mark.parametrize(
    "garbage", [b"<html>oops</html>", b"", b'{"choices": "none"}', b"[1, 2]", b"\xff\xfe"]
)
def test_garbage_is_no_answer(here: Setting, garbage: bytes) -> None:
    here.upstream.planned.append(answered(garbage))
    assert error(here.post()) == (502, "provider_failed")


def test_a_stream_of_garbage(here: Setting) -> None:
    async def garbage(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"data: <oops>\n\n", content_type="text/event-stream")

    here.upstream.planned.append(garbage)
    assert error(here.post(stream=True)) == (502, "provider_failed")


def events(answer: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


def test_a_stream_that_is_cut_ends_with_an_error_and_not_as_if_it_were_whole(
    here: Setting,
) -> None:
    here.upstream.planned.append(streamed([chunk({"content": "Hel"})], then=cut_off, done=False))
    answer = here.post(stream=True)
    first, last = events(answer)
    assert answer.status_code == 200
    assert first["choices"][0]["delta"]["content"] == "Hel"
    assert last["error"]["type"] == "server_error"


def test_a_stream_that_ends_without_its_end(here: Setting) -> None:
    here.upstream.planned.append(streamed([chunk({"content": "Hel"})], done=False))
    assert "error" in events(here.post(stream=True))[-1]


def test_garbage_in_the_middle_of_a_stream(here: Setting) -> None:
    async def garbage(request: web.Request) -> web.StreamResponse:
        said = b"data: " + orjson.dumps(chunk({"content": "Hel"})) + b"\n\ndata: {oops\n\n"
        return web.Response(body=said, content_type="text/event-stream")

    here.upstream.planned.append(garbage)
    assert "error" in events(here.post(stream=True))[-1]


def test_a_failure_is_asked_again_and_the_client_sees_nothing_of_it(here: Setting) -> None:
    here.upstream.planned.extend([refused(500, "oops"), answered(completion("Again."))])
    assert here.post().json()["choices"][0]["message"]["content"] == "Again."


def test_an_unexpected_error_of_the_gateway_is_told_as_every_other(
    here: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(here.world.gateway._upstream, "ask", broken)
    answer = here.post()
    assert error(answer) == (500, "internal_error")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_a_stream_that_fails_in_the_gateway_is_not_ended_as_if_it_were_whole(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b'data: {"choices": []}\n\n'
        raise ZeroDivisionError

    async def broken(*_: Any) -> Stream:
        return Stream(events(), Answered())

    monkeypatch.setattr(here.world.gateway._upstream, "ask", broken)
    with pytest.raises(httpx.RemoteProtocolError):
        here.post(stream=True)
