"""Providers that misbehave as they are told, on real ports, and an Upstream in front of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from serve.ask.limiter_host import InProcessPermits
from serve.ask.settings import Provider
from serve.gateway.contract import Answer, Answered, Call, Caller, Endpoint, Stream, Target, Task
from serve.gateway.upstream import Upstream

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEY_ENV = "TEST_UPSTREAM_KEY"
KEY = "sk-a-secret-that-must-not-leak"
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
GOOD = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m-2026",
    "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": USAGE,
    "something_new": {"a": 1},
}
MESSAGES = [{"role": "user", "content": "hello"}]


def error_body(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "x", "param": param, "code": code}}


def answering(
    status: int = 200, body: object = GOOD, headers: Mapping[str, str] | None = None
) -> Handler:
    """Answers with `body`, bytes or JSON."""

    async def handler(_: web.Request) -> web.StreamResponse:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        given = {"content-type": "application/json", **(headers or {})}
        return web.Response(status=status, body=data, headers=given)

    return handler


def chunk(text: str | None = None, **choice: Any) -> bytes:
    """The payload of one piece of a stream, as OpenAI sends it with usage asked for."""
    delta = {"content": text} if text is not None else {}
    whole = {"index": 0, "delta": delta, "finish_reason": None, **choice}
    return orjson.dumps({"id": "c", "model": "m-2026", "choices": [whole], "usage": None})


COUNT = orjson.dumps({"id": "c", "model": "m-2026", "choices": [], "usage": USAGE})
PIECES = (chunk("Hel"), chunk("lo"), chunk(finish_reason="stop"))


def streaming(
    *payloads: bytes,
    raw: bytes = b"",
    then: Callable[[web.Request], Awaitable[None]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Handler:
    """Sends the payloads as events, then the bytes `raw`, and does what `then` says."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", **(headers or {})}
        )
        await response.prepare(request)
        for payload in payloads:
            await response.write(b"data: " + payload + b"\n\n")
        if raw:
            await response.write(raw)
        if then is not None:
            await then(request)
        return response

    return handler


async def lose(request: web.Request) -> None:
    """Lose the connection."""
    assert request.transport is not None
    request.transport.abort()


async def hang(_: web.Request) -> None:
    """Never answer."""
    await asyncio.Event().wait()


@dataclass
class Fake:
    """A provider that answers each request as the next of `script` says, the last one for ever;
    without a script nobody is there.

    `seen`: bodies in the order of arrival; `came`, `left`: set when a request came, and when a
    client went away.
    """

    script: list[Handler]
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(orjson.loads(await request.read()))
        self.headers.append(dict(request.headers))
        self.came.set()
        script = self.script
        try:
            return await (script.pop(0) if len(script) > 1 else script[0])(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise


@dataclass
class World:
    """An Upstream, and what its limiters are."""

    upstream: Upstream
    permits: list[InProcessPermits]
    targets: tuple[Target, ...]
    clock: Callable[[], float]

    async def ask(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        endpoint: Endpoint = "chat/completions",
        timeout: float = 5.0,  # noqa: ASYNC109
        task: Task | None = None,
        spent: float = 0.0,
        about: Answered | None = None,
    ) -> Answer:
        """Ask all targets in turn. `spent`: seconds of the timeout that are over already."""
        given = {"model": "any", "messages": MESSAGES, **(body or {})}
        call = Call(
            endpoint=endpoint,
            body=given,
            caller=Caller(),
            request_id="r",
            name="any",
            stream=bool(given.get("stream")),
            estimate=5,
            timeout=timeout,
            task=task,
        )
        return await self.upstream.ask(call, self.targets, self.clock() - spent, about)

    async def stream(self, body: Mapping[str, Any] | None = None, **more: Any) -> Stream:
        answer = await self.ask({"stream": True, **(body or {})}, **more)
        assert isinstance(answer, Stream)
        return answer

    async def in_use(self) -> int:
        """Permits not given back."""
        return sum([(await each.stats()).in_use for each in self.permits])


@asynccontextmanager
async def world(
    *fakes: Fake, clock: Callable[[], float] = time.monotonic, **settings: Any
) -> AsyncIterator[World]:
    """An Upstream with a provider for each of `fakes`, to be asked in their order. No permit may be
    missing at the end."""
    runners = []
    providers = {}
    for number, fake in enumerate(fakes):
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/{path:.*}", fake.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        if not fake.script:
            await runner.cleanup()
        given = {"base_url": fake.url, "models": ("m",), "key_env": KEY_ENV, **settings}
        providers[f"p{number}"] = Provider.model_validate(given)
    permits: list[InProcessPermits] = []

    def permits_of(provider: Provider) -> InProcessPermits:
        permits.append(InProcessPermits(provider.limits.to_limits()))
        return permits[-1]

    upstream = Upstream(providers, permits_of, clock=clock)
    made = World(upstream, permits, tuple(Target(name, "m") for name in providers), clock)
    try:
        yield made
        assert await made.in_use() == 0
    finally:
        await upstream.aclose()
        for runner in runners:
            await runner.cleanup()


async def events_of(stream: Stream) -> list[bytes]:
    """The payloads of a stream, read to its end."""
    return [each.removeprefix(b"data: ").removesuffix(b"\n\n") async for each in stream.events]
