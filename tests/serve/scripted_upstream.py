"""A provider that does what a test says, on a real port: answers by a plan, notes what it was sent.

Each request for a completion or for embeddings takes the next of the planned answers; where none
is planned, `otherwise` is given.
"""

from __future__ import annotations

import asyncio
import base64
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from aiohttp import web

from tests.serving import serving

Planned = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SECONDS = 60.0


class Upstream:
    """What the provider was sent, and what it is to answer. `url`: the base of the protocol's."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.planned: deque[Planned] = deque()
        self.otherwise: Planned = plain
        self.arrived = threading.Semaphore(0)
        self.left = threading.Semaphore(0)
        """One more for each request whose client did not wait for the end."""

    @property
    def calls(self) -> int:
        """Requests so far."""
        return len(self.bodies)

    def begin_anew(self) -> None:
        """Nothing is planned, and nobody has been waited for in vain."""
        self.planned.clear()
        self.arrived, self.left = threading.Semaphore(0), threading.Semaphore(0)

    def wait_arrived(self) -> None:
        """Wait for the next request that nobody has waited for yet."""
        assert self.arrived.acquire(timeout=_SECONDS)

    def wait_left(self) -> None:
        """Wait until a client has given up a request."""
        assert self.left.acquire(timeout=_SECONDS)

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/embeddings", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(orjson.loads(await request.read()))
        self.headers.append(dict(request.headers))
        self.arrived.release()
        planned = self.planned.popleft() if self.planned else self.otherwise
        try:
            return await planned(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.release()
            raise


@contextmanager
def upstream_world() -> Iterator[Upstream]:
    """A running upstream."""
    upstream = Upstream()
    with serving(upstream.app(), handler_cancellation=True) as root:
        upstream.url = f"{root}/v1"
        yield upstream


def completion(content: str | None = "Hello.", **message: Any) -> dict[str, Any]:
    """A whole chat completion."""
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "simulated",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": reason,
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
    }


def chunk(delta: dict[str, Any] | None, finish_reason: str | None = None) -> dict[str, Any]:
    """A chunk of a stream; without a delta the one that holds the usage."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "simulated",
        "choices": [] if delta is None else choices,
        **({"usage": completion()["usage"]} if delta is None else {}),
    }


def chunks(*texts: str) -> list[dict[str, Any]]:
    """A whole stream that says `texts`, usage included."""
    said = [chunk({"content": text}) for text in texts]
    return [chunk({"role": "assistant", "content": ""}), *said, chunk({}, "stop"), chunk(None)]


async def plain(request: web.Request) -> web.StreamResponse:
    """An answer that fits the request."""
    body = orjson.loads(await request.read())
    if request.path.endswith("/embeddings"):
        return web.json_response(embeddings(body))
    if body.get("stream"):
        return await streamed(chunks("Hel", "lo", "."))(request)
    return web.json_response(completion())


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """A vector of each input: its place, a half, and a whole."""
    given = body["input"]
    many = isinstance(given, list) and not isinstance(given[0], int)
    vectors = [[float(place), 0.5, 1.0] for place in range(len(given) if many else 1)]
    packed = body.get("encoding_format") == "base64"
    return {
        "object": "list",
        "model": "simulated",
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": _packed(vector) if packed else vector,
            }
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def answered(body: Any, status: int = 200, **headers: str) -> Planned:
    """A JSON answer, or bytes as they are."""

    async def answer(_: web.Request) -> web.StreamResponse:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(
            body=raw, status=status, content_type="application/json", headers=headers
        )

    return answer


def refused(status: int, message: str, code: str | None = None, **headers: str) -> Planned:
    """An error of the provider."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return answered({"error": error}, status, **headers)


def streamed(
    said: Sequence[dict[str, Any]], then: Planned | None = None, done: bool = True
) -> Planned:
    """A stream of chunks; `then` is called after them, before the end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for each in said:
            await response.write(b"data: " + orjson.dumps(each) + b"\n\n")
        if then is not None:
            await then(request)
        if done:
            await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    return answer


async def silence(_: web.Request) -> web.StreamResponse:
    """No answer, for as long as somebody waits."""
    await asyncio.Event().wait()
    raise AssertionError


async def cut_off(request: web.Request) -> web.StreamResponse:
    """The connection ends."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
