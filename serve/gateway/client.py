"""One client's request, as ASGI has it: what it sends, whether it is still there, what it gets.

Invariant: whoever has left is not worked for any more; an answer that has begun is never followed
by a second one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from serve.gateway.contract import Answered, Call, Caller, Stream
from serve.gateway.errors import GatewayError
from serve.gateway.request import headers_of, request_id

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
RawHeaders = Iterable[tuple[bytes, bytes]]

WATCH_SECONDS = 0.2
"""After which it is watched whether the client is still there: an answer that takes less costs no
task to watch for it."""
PIECE_BYTES = 64 * 2**10
"""Of a whole answer that are given to the server at once: as many as it holds before it waits for
the client (uvicorn's HIGH_WATER_LIMIT)."""
LEAST_BYTES = 256 * 2**10
"""Bytes a second that the client of a long answer has time for at least: 2 Mbit/s."""
JSON = (b"content-type", b"application/json")
_EVENTS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # nginx would hold events back otherwise.
    (b"x-accel-buffering", b"no"),
)


def connection_of(send: Send) -> asyncio.WriteTransport | None:
    """The connection behind `send`, which ASGI does not give, where uvicorn's protocols made it and
    nothing lies around it."""
    # uvloop's transports are none of asyncio's classes.
    connection: asyncio.WriteTransport | None
    connection = getattr(getattr(send, "__self__", None), "transport", None)
    return connection


class ClientGone(Exception):
    """The client has left, or takes nothing any more; there is nobody to answer."""


class Client:
    """Who sent one request. `since`: when it arrived, in the seconds of the gateway's clock; `id`:
    the request's; `caller`: whose it is, once its key is known; `call`: what it asks a model for,
    once that is understood; `about`: its answer, once there is one; `status`: what was answered,
    None: nothing yet."""

    def __init__(
        self, scope: Mapping[str, Any], receive: Receive, send: Send, since: float
    ) -> None:
        self.since = since
        self.headers = headers_of(scope["headers"])
        self.id = request_id(self.headers.get("x-request-id"))
        self.caller: Caller | None = None
        self.call: Call | None = None
        self.about = Answered()
        self.status: int | None = None
        self._receive = receive
        self._send = send
        self._task: asyncio.Task[Any] | None = None
        self._watching: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._gone = False

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it comes. When it is there, the task that read it is cancelled if the client
        leaves. Raises ClientGone where it leaves before."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientGone
            more = message.get("more_body", False)
            yield message.get("body", b"")
        self._task = asyncio.current_task()
        self._watching = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._start_to_watch)

    def left(self) -> bool:
        """Whether the task was cancelled because the client left, and for no other reason. Asked
        where the cancellation arrived."""
        return self._gone and self._task is not None and self._task.uncancel() == 0

    def close(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            self._watching.cancel()

    async def send(
        self, status: int, body: bytes, headers: RawHeaders, seconds: float = 0.0
    ) -> None:
        """A whole answer. Raises ClientGone where the client does not take a long one within
        `seconds`, or at LEAST_BYTES a second."""
        length = (b"content-length", b"%d" % len(body))
        await self._begin(status, (length, *headers))
        if len(body) <= PIECE_BYTES:
            await self._send({"type": "http.response.body", "body": body})
            return
        async with self._taking(max(seconds, len(body) / LEAST_BYTES)):
            for start in range(0, len(body), PIECE_BYTES):
                end = start + PIECE_BYTES
                await self._send(
                    {
                        "type": "http.response.body",
                        "body": body[start:end],
                        "more_body": end < len(body),
                    }
                )

    async def send_error(self, error: GatewayError) -> None:
        """An error in OpenAI's form."""
        own = [(name.encode(), value.encode()) for name, value in error.headers().items()]
        await self.send(error.status, error.json(), (JSON, *own))

    async def send_stream(self, stream: Stream, headers: RawHeaders, seconds: float) -> None:
        """Each event as it comes. The status waits for the first one: what goes wrong before it is
        raised, and nothing is sent. Raises ClientGone where the client does not take all of it
        within `seconds`."""
        events = aiter(stream.events)
        event = await anext(events, b"")
        await self._begin(200, (*_EVENTS, *headers))
        async with self._taking(seconds):
            while event:
                await self._send({"type": "http.response.body", "body": event, "more_body": True})
                event = await anext(events, b"")
            await self._send({"type": "http.response.body", "body": b""})

    async def send_pieces(
        self, status: int, headers: RawHeaders, pieces: AsyncIterator[bytes], seconds: float
    ) -> None:
        """An answer that comes in pieces, of the length that `headers` say. Raises ClientGone where
        the client does not take one of them within `seconds`."""
        await self._begin(status, headers)
        async for piece in pieces:
            async with self._taking(seconds):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def _taking(self, seconds: float) -> AsyncIterator[None]:
        """While the client takes an answer. Raises ClientGone where that lasts longer."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            connection = connection_of(self._send)
            if connection is not None:
                # Otherwise it is closed when the client has taken what was sent, which is never.
                connection.abort()
            raise ClientGone from None

    async def _begin(self, status: int, headers: RawHeaders) -> None:
        self.status = status
        known = (b"x-request-id", self.id.encode())
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [known, *headers]}
        )

    def _start_to_watch(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        if self._task is not None:
            self._task.cancel()
