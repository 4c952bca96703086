"""A gateway in this process, behind uvicorn on a free port, in front of given providers.

    with gateway_world({"main": provider.base_url}) as world:
        answer = httpx.post(f"{world.base_url}/chat/completions", json=...)

The server has a thread and a loop of its own; `world.run` runs something on it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, TypeVar

import uvicorn
import uvloop

from serve.ask.settings import Provider
from serve.gateway.admission import Admission
from serve.gateway.app import build_app
from serve.gateway.build import build_gateway
from serve.gateway.gateway import Gateway
from serve.gateway.settings import GatewaySettings, ServeSettings

MODELS = ("simulated",)
"""What providers have that are given by their URL alone."""
_SECONDS = 60.0

_T = TypeVar("_T")
Build = Callable[[GatewaySettings], Gateway]


@dataclass(frozen=True, slots=True)
class World:
    """A running gateway. `url`: `http://127.0.0.1:PORT`."""

    url: str
    gateway: Gateway
    loop: asyncio.AbstractEventLoop

    @property
    def base_url(self) -> str:
        """Where OpenAI's protocol is spoken."""
        return f"{self.url}/v1"

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """What `coroutine` gives on the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=_SECONDS)


class _Server(uvicorn.Server):
    """Says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.ready.set()


def is_empty(admission: Admission) -> bool:
    """Whether nobody is here."""
    return not (admission._inside or admission._coming or admission._bytes)


async def everybody_left(admission: Admission, seconds: float) -> tuple[int, int]:
    """The turns that are taken and waited for once nobody is here any more, of which no event
    tells. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not is_empty(admission):  # noqa: ASYNC110 - nothing in it tells
            await asyncio.sleep(0.005)
    return admission.in_flight, admission.waiting


def provider_at(base_url: str, **fields: Any) -> Provider:
    """A provider at a URL of this machine, with the models MODELS unless `fields` say others."""
    return Provider.model_validate({"base_url": base_url, "models": MODELS, **fields})


@contextmanager
def gateway_world(
    providers: Mapping[str, str | Provider],
    serve: Mapping[str, Any] | None = None,
    build: Build = build_gateway,
) -> Iterator[World]:
    """A gateway in front of `providers` (by name: a base URL, or all that is known of it) with the
    `serve` section given; `build` makes it of its settings. It is drained and closed at the end."""
    with TemporaryDirectory() as state, socket.socket() as listening:
        settings = GatewaySettings(
            providers={
                name: provider_at(each) if isinstance(each, str) else each
                for name, each in providers.items()
            },
            serve=ServeSettings.model_validate({"state": state, **(serve or {})}),
        )
        gateway = build(settings)
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            build_app(gateway), log_level="critical", access_log=False, timeout_graceful_shutdown=1
        )
        server = _Server(config)
        loop = uvloop.new_event_loop()
        thread = Thread(target=_serve, args=(loop, server, listening), daemon=True)
        thread.start()
        try:
            if not server.ready.wait(_SECONDS) or not server.started:
                raise RuntimeError("the gateway did not start")
            yield World(f"http://127.0.0.1:{port}", gateway, loop)
        finally:
            server.should_exit = True
            thread.join(timeout=_SECONDS)
            loop.close()


def _serve(loop: asyncio.AbstractEventLoop, server: _Server, listening: socket.socket) -> None:
    asyncio.set_event_loop(loop)
    loop.run_until_complete(server.serve([listening]))
