"""What Ray Serve's proxy says itself, as clients of OpenAI's protocol see it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
import uvloop
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


async def test_probes_see_a_process_that_lives_and_takes_nothing_while_it_starts_or_ends() -> None:
    absent = saying(start(404, PLAIN), body(b"Path '/healthz' not found."))
    async with client(absent) as http:
        lives, ready = await http.get("/healthz"), await http.get("/readyz")
    assert (lives.status_code, lives.json()) == (200, {"status": "starting or ending"})
    assert (ready.status_code, ready.json()["error"]["code"]) == (503, "gateway_draining")


@pytest.mark.parametrize(
    ("messages", "status", "code"),
    [
        ((start(404, PLAIN), body(b"Path '/v1/models' not found.")), 503, "gateway_draining"),
        ((start(503, PLAIN), body(b"Request dropped")), 503, "gateway_overloaded"),
        ((start(408, PLAIN), body(b"Request 1 timed out after 1.0s.")), 408, "gateway_timed_out"),
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


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux's kernel can")
def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.proxy_errors.TAKE_SECONDS", 0.1)

    async def run() -> None:
        left = asyncio.Event()

        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                left.set()

            watching = asyncio.create_task(watch())
            await send(start(200, EVENTS))
            while not left.is_set():
                await send(body(b"x" * 2**16, more=True))
            await watching

        (middleware,) = middlewares()
        app = middleware.cls(endless, *middleware.args, **middleware.kwargs)
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            serving = asyncio.create_task(server.serve([listening]))
            with socket.create_connection(listening.getsockname()) as client:
                client.sendall(b"GET /v1/x HTTP/1.1\r\nhost: gateway\r\n\r\n")
                async with asyncio.timeout(60):
                    await left.wait()
            server.should_exit = True
            await serving

    # Whose transports are not asyncio's; Ray installs it.
    uvloop.run(run())
