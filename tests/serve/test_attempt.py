"""Every foreign answer becomes one error of the tree; the server is real and misbehaves."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from email.utils import formatdate

import orjson
import pytest
from aiohttp import web

from serve.ask.attempt import Attempt
from serve.ask.errors import (
    AskError,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
    Unsupported,
)
from serve.ask.wire import retry_after_seconds

KEY = "sk-a-secret-that-must-not-leak"
BODY = {
    "model": "m",
    "messages": [],
    "temperature": 0.0,
    "max_tokens": 10,
    "response_format": {"type": "json_schema"},
}
GOOD = {
    "model": "m-2026",
    "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 3},
    },
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[Attempt]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    attempt = Attempt(f"http://127.0.0.1:{port}/v1", KEY)
    try:
        yield attempt
    finally:
        await attempt.aclose()
        await runner.cleanup()


def answering(status: int, body: object = None, headers: dict[str, str] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(status=status, body=data, headers=headers)

    return handler


def error(message: str, code: str | None = None, param: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": "x", "param": param, "code": code}}


async def test_a_completion_becomes_a_reply_with_what_it_cost() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return web.json_response(GOOD, headers={"X-RateLimit-Remaining-Requests": "9"})

    async with server(handler) as attempt:
        reply, headers = await attempt.complete(BODY, 5)
    assert (reply.text, reply.finish_reason, reply.model) == ("hi", "stop", "m-2026")
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.cached) == (7, 2, 3)
    assert headers["x-ratelimit-remaining-requests"] == "9"
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind"),
    [
        (401, error(f"Incorrect API key provided: {KEY}"), {}, Misconfigured),
        (403, error("not in your region"), {}, Misconfigured),
        (404, error("no such model", "model_not_found"), {}, Misconfigured),
        (402, error("pay first"), {}, QuotaExhausted),
        (429, error("quota", "insufficient_quota"), {}, QuotaExhausted),
        (429, error("later"), {"retry-after": "601"}, QuotaExhausted),
        (429, error("slow down"), {"retry-after": "7"}, RateLimited),
        (500, b"<html>oops</html>", {}, Unavailable),
        (503, error("busy"), {"retry-after": "3"}, Unavailable),
        (200, b"<html>a proxy's page</html>", {}, Unavailable),
        (200, {"choices": []}, {}, Unavailable),
        (200, {"choices": [{"message": None}]}, {}, Unavailable),
        (200, error("all is not well"), {}, Refused),
        (200, error("slow down", "429"), {}, RateLimited),
        (200, error("down", "502"), {}, Unavailable),
        (200, {"choices": [{"message": {"content": 7}}]}, {}, Unavailable),
        (301, b"moved", {"location": "https://elsewhere/"}, Misconfigured),
        (503, error("maintenance"), {"retry-after": "86400"}, QuotaExhausted),
        (400, error("the text says temperature 30"), {}, Refused),
        (400, error("too long", "context_length_exceeded"), {}, ContextOverflow),
        (400, error("maximum context length is 8192"), {}, ContextOverflow),
        (400, error("violates the policy", "content_policy_violation"), {}, Refused),
        (400, error("unknown", None, "temperature"), {}, Unsupported),
        (422, error("weird"), {}, Refused),
        (200, {"choices": [{"message": {"content": None, "refusal": "I cannot"}}]}, {}, Refused),
        (
            200,
            {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]},
            {},
            Refused,
        ),
    ],
)
async def test_every_answer_that_is_no_completion_has_its_error(
    status: int, body: object, headers: dict[str, str], kind: type[AskError]
) -> None:
    async with server(answering(status, body, headers)) as attempt:
        with pytest.raises(AskError) as caught:
            await attempt.complete(BODY, 5)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.args)


@pytest.mark.parametrize(
    ("message", "param", "feature"),
    [
        ("response_format json_schema is not supported", None, "json_schema"),
        ("Invalid parameter", "response_format", "json_schema"),
        ("Unsupported parameter: 'max_tokens'", "max_tokens", "max_tokens"),
        ("temperature does not support 0", None, "temperature"),
    ],
)
async def test_a_refused_feature_is_named(message: str, param: str | None, feature: str) -> None:
    async with server(answering(400, error(message, None, param))) as attempt:
        with pytest.raises(Unsupported) as caught:
            await attempt.complete(BODY, 5)
    assert caught.value.feature == feature


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None}, ""),
    ],
)
async def test_odd_but_usable_answers_are_used(change: dict[str, object], text: str) -> None:
    odd = {"choices": [{"message": change}], "usage": {"prompt_tokens": "n/a"}}
    async with server(answering(200, odd)) as attempt:
        reply, _ = await attempt.complete(BODY, 5)
    assert (reply.text, reply.usage.tokens_in) == (text, 0)


async def test_waiting_times_are_understood() -> None:
    now = time.time()
    assert retry_after_seconds({"retry-after": "7"}, now) == 7
    assert retry_after_seconds({"retry-after": "0.5"}, now) == 0.5
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "2"}, now) == 1.5
    later = retry_after_seconds({"retry-after": formatdate(now + 30, usegmt=True)}, now)
    assert later is not None
    assert 28 <= later <= 31
    assert retry_after_seconds({"retry-after": "soon"}, now) is None
    assert retry_after_seconds({}, now) is None
    assert retry_after_seconds({"retry-after": "-5"}, now) == 0


async def test_silence_is_a_timeout_and_a_closed_door_unavailable() -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with server(hang) as attempt:
        with pytest.raises(TimedOut):
            await attempt.complete(BODY, 0.1)
    closed = Attempt("http://127.0.0.1:9/v1", None)
    with pytest.raises(Unavailable) as caught:
        await closed.complete(BODY, 5)
    assert type(caught.value) is Unavailable
    await closed.aclose()


async def test_a_connection_that_ends_in_the_middle_is_unavailable() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.close()
        return response

    async with server(cut) as attempt:
        with pytest.raises(Unavailable):
            await attempt.complete(BODY, 5)


async def test_what_found_no_connection_in_time_was_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serve.ask.attempt.CONNECT_SECONDS", 0.2)
    with ExitStack() as stack:
        nobody = stack.enter_context(socket.socket())
        nobody.bind(("127.0.0.1", 0))
        nobody.listen(0)
        # Nobody accepts, and these fill the queue of those who want to be.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(nobody.getsockname())
        attempt = Attempt(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", KEY)
        with pytest.raises(TimedOut, match="could not be reached in time") as caught:
            await attempt.complete(BODY, 20.0)
        await attempt.aclose()
    assert not caught.value.sent


async def test_what_was_sent_and_not_answered_in_time_may_be_billed() -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        raise AssertionError(request)

    async with server(hang) as attempt:
        with pytest.raises(TimedOut) as caught:
            await attempt.complete(BODY, 0.2)
    assert caught.value.sent
