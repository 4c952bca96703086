"""A provider that takes its time: `wait S` as the message is answered after S seconds, or, as a
stream, in ten pieces over S seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.serving import serving

MODEL = "slow"
PIECES = 10


@dataclass
class SlowProvider:
    """`begun`: requests that arrived, `ended`: those that were answered to their end."""

    base_url: str = ""
    begun: int = 0
    ended: int = 0
    models: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        self.begun += 1
        self.models.append(body["model"])
        words = str(body["messages"][-1]["content"]).split()
        seconds = float(words[1]) if words[0] == "wait" else 0.0
        if not body.get("stream"):
            await asyncio.sleep(seconds)
            self.ended += 1
            return web.json_response(_completion("done"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in range(PIECES):
            await response.write(_event(_chunk(f"{piece} ")))
            await asyncio.sleep(seconds / PIECES)
        await response.write(_event(_chunk(None)) + b"data: [DONE]\n\n")
        self.ended += 1
        return response


@contextmanager
def slow_provider() -> Iterator[SlowProvider]:
    """A slow provider on a port of its own."""
    provider = SlowProvider()
    application = web.Application()
    application.router.add_post("/v1/chat/completions", provider.answer)
    with serving(application) as url:
        provider.base_url = f"{url}/v1"
        yield provider


_SAME = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": MODEL}


def _completion(content: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {
        **_SAME,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _chunk(content: str | None) -> dict[str, Any]:
    delta = {} if content is None else {"content": content}
    reason = "stop" if content is None else None
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {**_SAME, "object": "chat.completion.chunk", "choices": choices}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
