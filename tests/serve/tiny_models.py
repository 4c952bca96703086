"""A small model of the cluster: its server class, and calls of it in this process.

A text's vector is its length and its words; a chat's answer is what was said, word by word. What
is said first decides: `hold` is answered when somebody says so, `wait SECONDS` so much later,
`break` breaks in the middle, `refuse` is refused.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from serve.ask.errors import Refused, Unavailable
from serve.embedder import EmbeddingModelError
from serve.models.load import Loader
from serve.models.settings import EmbedderSettings, ModelSettings


class TinyServer:
    """Implements `ModelServer`. `held`: requests that wait to be answered; `release`: set, they
    are."""

    def __init__(self, settings: ModelSettings) -> None:
        kind = settings.embedder if isinstance(settings, EmbedderSettings) else settings.generator
        if kind == "missing":
            raise EmbeddingModelError("embedding model 'missing' cannot be loaded: no such model")
        self._id = uuid.uuid4().hex
        self._queue = settings.queue
        self.running = 0
        self.answered = 0
        self.closed = False
        self.held = asyncio.Semaphore(0)
        self.release = asyncio.Event()

    async def answer(self, endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """See `ModelServer.answer`."""
        self._enter()
        try:
            if endpoint == "embeddings":
                return _vectors(body)
            return await self._completion(body)
        finally:
            self.running -= 1

    async def stream(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelServer.stream`."""
        self._enter()
        try:
            words = _words(body)
            if words[0] == "refuse":
                raise _refused()
            for place, word in enumerate(words):
                yield _chunk({"content": f"{word} "})
                await self._obey(words, place)
            yield _chunk({}, "stop")
            yield orjson.dumps({"id": "c", "choices": [], "usage": _usage(words)})
        finally:
            self.running -= 1

    def numbers(self) -> Mapping[str, float]:
        """See `ModelServer.numbers`."""
        return {"running": self.running, "queue": 0, "answered": self.answered}

    def check_health(self) -> None:
        """See `ModelServer.check_health`."""

    async def aclose(self) -> None:
        """See `ModelServer.aclose`."""
        self.closed = True

    def _enter(self) -> None:
        if self.running >= self._queue:
            raise Unavailable("the queue is full", 503, 2.0)
        self.running += 1
        self.answered += 1

    async def _completion(self, body: Mapping[str, Any]) -> bytes:
        words = _words(body)
        if words[0] == "refuse":
            raise _refused()
        await self._obey(words, 0)
        message = {"role": "assistant", "content": " ".join(words)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        shown = {"id": "c", "object": "chat.completion", "system_fingerprint": self._id}
        shown["gpus"] = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
        return orjson.dumps({**shown, "choices": [choice], "usage": _usage(words)})

    async def _obey(self, words: list[str], place: int) -> None:
        order = words[0]
        if order == "hold" and place == 0:
            self.held.release()
            await self.release.wait()
        elif order == "wait" and place == 0:
            await asyncio.sleep(float(words[1]))
        elif order == "break" and place == 1:
            raise Unavailable("the model broke", 500)


class TinyCalls:
    """`ReadyCalls` in this process. `lost`: calls that end before they are answered, the next
    ones, as if their process had died; `loading`: models that get ready when `loaded` is set."""

    def __init__(self, servers: Mapping[str, TinyServer], lost: list[Exception]) -> None:
        self.servers = servers
        self.lost = lost
        self.calls = 0
        self.loading: set[str] = set()
        self.loaded = asyncio.Event()

    async def ready(self, model: str) -> None:
        """See `ReadyCalls.ready`."""
        if model in self.loading:
            await self.loaded.wait()

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelCalls.answer`."""
        self._next()
        return await self.servers[model].answer(endpoint, body, seconds)

    async def stream(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelCalls.stream`."""
        self._next()
        async with aclosing(self.servers[model].stream(endpoint, body, seconds)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _next(self) -> None:
        self.calls += 1
        if self.lost:
            raise self.lost.pop(0)


def fault(_: ModelSettings) -> str:
    """See `Loader`: nothing is seen before it is loaded."""
    return ""


LOADER = Loader(fault, TinyServer)


def _refused() -> Refused:
    error = Refused("refused", 400)
    error.said, error.param, error.code = "I will not answer that.", "messages", "refused"
    return error


def _words(body: Mapping[str, Any]) -> list[str]:
    return str(body["messages"][-1]["content"]).split()


def _usage(words: list[str]) -> dict[str, int]:
    count = len(words)
    return {"prompt_tokens": count, "completion_tokens": count, "total_tokens": 2 * count}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return orjson.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def _vectors(body: Mapping[str, Any]) -> bytes:
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    data = [
        {"object": "embedding", "index": i, "embedding": [float(len(text)), len(text.split())]}
        for i, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps({"object": "list", "model": body["model"], "data": data, "usage": usage})
