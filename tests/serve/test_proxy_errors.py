"""What Ray Serve's proxy says itself, as clients of OpenAI's protocol see it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.proxy_errors import middlewares

PLAIN = [(b"content-type", b"text/plain; charset=utf-8")]
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]


def start(status: int, headers: Sequence[tuple[bytes, bytes]]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def saying(*messages: Message) -> ASGIApp:
    """A proxy that sends these and no more."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


@asynccontextmanager
async def client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    for middleware in middlewares():
        app = middleware.cls(app, *middleware.args, **middleware.kwargs)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as found:
        yield found


@pytest.mark.parametrize(
    ("messages", "status", "code"),
    [
        ((start(404, PLAIN), body(b"Path '/v1/models' not found.")), 503, "gateway_draining"),
        ((start(503, PLAIN), body(b"Request dropped")), 503, "gateway_overloaded"),
        ((), 500, "gateway_replica_lost"),
    ],
)
async def test_its_own_words_are_errors_of_the_protocol(
    messages: Sequence[Message], status: int, code: str
) -> None:
    async with client(saying(*messages)) as asked:
        answer = await asked.get("/v1/models", headers={"x-request-id": "mine"})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.headers["x-request-id"] == "mine"
    assert status != 503 or int(answer.headers["retry-after"]) >= 1


async def test_a_stream_whose_replica_died_ends_with_an_error() -> None:
    async with client(saying(start(200, EVENTS), body(b"data: {}\n\n", more=True))) as asked:
        answer = await asked.post("/v1/chat/completions")
    first, last = answer.text.strip().split("\n\n")
    assert first == "data: {}"
    assert '"gateway_replica_lost"' in last


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        ("/v1/x", (start(404, [(b"content-type", b"application/json")]), body(b'{"error": 1}'))),
        ("/v1/x", (start(200, PLAIN), body(b"a", more=True), body(b"b"))),
        ("/shop", (start(404, PLAIN), body(b"no such product"))),
    ],
)
async def test_what_an_application_says_passes_unchanged(
    path: str, messages: Sequence[Message]
) -> None:
    async with client(saying(*messages)) as asked:
        answer = await asked.get(path)
    assert answer.status_code == messages[0]["status"]
    assert answer.content == b"".join(message["body"] for message in messages[1:])
