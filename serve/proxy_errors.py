"""What a client sees where no replica of the gateway answers it: OpenAI's error form; and the end
of one that takes no answer.

Invariant: what a replica said passes unchanged, and so does what is not OpenAI's protocol. Of its
own Ray Serve's proxy speaks plain text: "Path not found" while the gateway starts or ends, "Request
dropped" where its queue is full, "Request timed out" after the seconds of its own option or of the
header x-request-timeout-seconds, "Internal Server Error" where a replica died; and a stream whose
replica died it just cuts. Clients of OpenAI's protocol can read none of these.

Ray Serve calls `middlewares` in each of its proxies where the environment of its nodes says so:
RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=serve.proxy_errors:middlewares.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.gateway.client import connection_of
from serve.gateway.errors import Draining, GatewayError, OutOfTime, Overloaded, ReplicaLost

IMPORT_PATH = "serve.proxy_errors:middlewares"
PREFIX = "/v1/"
"""Paths of OpenAI's protocol."""
LIVES = "/healthz"
READY = "/readyz"
"""What probes look at: while the gateway starts or ends it lives, and takes no requests."""

TAKE_SECONDS = 60.0
"""For which a client may take nothing of what it is sent: the proxy itself waits for ever."""
_ABSENT = Draining("The gateway is starting or ending. Send the request again.", retry_after=1)
_FULL = Overloaded("More requests wait than the gateway takes. Send it again.", retry_after=1)
_LOST = ReplicaLost("The gateway's process that was answering this request ended. Send it again.")
_LATE = OutOfTime(
    "The request's time is over, which x-request-timeout-seconds or the gateway's ingress sets."
)
_OWN_WORDS = {404: _ABSENT, 408: _LATE, 503: _FULL}
"""What the proxy says in plain text, by its status."""


def middlewares() -> list[Middleware]:
    """What Ray Serve puts around each of its proxies."""
    return [Middleware(OwnWords)]


class OwnWords:
    """ASGI middleware: what the proxy says itself, in OpenAI's form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] != "http" or not scope["path"].startswith((PREFIX, LIVES, READY)):
            await self._app(scope, receive, send)
            return
        _bound(send)
        answer = _Answer(send)
        await self._app(scope, receive, answer.pass_on)
        await answer.end(scope)


def _bound(send: Send) -> None:
    """Let the kernel end the connection of a client that takes nothing for TAKE_SECONDS; only
    Linux's can."""
    connection = connection_of(send)
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        taking = connection.get_extra_info("socket")
        taking.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKE_SECONDS * 1_000))


class _Answer:
    """One answer on its way to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun: Message | None = None
        self._ended = False
        self._instead: GatewayError | None = None

    async def pass_on(self, message: Message) -> None:
        """As the proxy's application sends it."""
        if self._instead is not None:
            return
        kind = message["type"]
        if kind == "http.response.start":
            if message["status"] in _OWN_WORDS and _media_type(message) == b"text/plain":
                self._instead = _OWN_WORDS[message["status"]]
                return
            self._begun = message
        elif kind == "http.response.body" and not message.get("more_body", False):
            self._ended = True
        await self._send(message)

    async def end(self, scope: Scope) -> None:
        """The proxy is done with it."""
        if self._begun is None:
            error = self._instead or _LOST
            if scope["path"] == LIVES and error is _ABSENT:
                await self._say(scope, 200, {}, b'{"status":"starting or ending"}')
                return
            await self._say(scope, error.status, error.headers(), error.json())
        elif not self._ended and _media_type(self._begun) == b"text/event-stream":
            # An error in the middle of a stream is an event, and the end.
            event = b"data: " + _LOST.json() + b"\n\n"
            await self._send({"type": "http.response.body", "body": event})

    async def _say(self, scope: Scope, status: int, more: Mapping[str, str], body: bytes) -> None:
        headers = [
            (b"content-type", b"application/json"),
            *((name.encode(), value.encode()) for name, value in more.items()),
            # The proxy gives each request an id that has none.
            *((name, value) for name, value in scope["headers"] if name == b"x-request-id"),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _media_type(begun: Message) -> bytes:
    for name, value in begun["headers"]:
        if name.lower() == b"content-type":
            return bytes(value).partition(b";")[0].strip()
    return b""
