"""A gateway that can be looked into, in front of a provider that fails as it is told to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson

from serve.ask.limiter_host import InProcessPermits
from serve.ask.permit import Limits
from serve.ask.settings import Provider
from serve.gateway.build import build_gateway
from serve.gateway.gateway import Gateway
from serve.gateway.settings import GatewaySettings
from tests.serve.gateway_world import World, everybody_left, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream, upstream_world

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Say hello."}]}
EMBEDDINGS = orjson.dumps({"model": "simulated", "input": "x"})
SECONDS = 60.0


class Setting:
    """A gateway whose permits can be looked at, in front of a scripted provider."""

    def __init__(self, world: World, upstream: Upstream, permits: list[InProcessPermits]) -> None:
        self.world = world
        self.upstream = upstream
        self._permits = permits
        self.http = httpx.Client(base_url=world.base_url, timeout=SECONDS)

    def post(self, **body: Any) -> httpx.Response:
        return self.http.post("/chat/completions", json={**CHAT, **body})

    def leave(self, body: bytes, after: Any, path: str = "/v1/chat/completions") -> None:
        """Send a request by hand, wait for `after`, and end the connection."""
        with self.connected() as connection:
            connection.sendall(head(len(body), path) + body)
            after(connection)

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        port = int(self.world.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
            yield connection

    def forget_failures(self) -> None:
        """Let the limiters begin anew, with closed breakers."""

        async def renew() -> None:
            for each in self._permits:
                each.__init__(Limits())  # type: ignore[misc]

        self.world.run(renew())

    def in_use(self) -> int:
        """Permits that are out, once everything that was told to the limiter has arrived."""

        async def look() -> int:
            await asyncio.sleep(0)
            return sum([(await each.stats()).in_use for each in self._permits])

        return self.world.run(look())

    def idle_after(self, arrived: Callable[[], None]) -> None:
        """See that nothing is held some time after a request has arrived."""
        arrived()
        self.idle()

    def idle(self) -> None:
        """Wait until nobody is here any more, then see that nothing is held."""
        admission = self.world.gateway.admission
        assert self.world.run(everybody_left(admission, SECONDS)) == (0, 0)
        assert self.in_use() == 0


def head(length: int, path: str = "/v1/chat/completions") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        f"content-length: {length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@contextmanager
def setting(provider: dict[str, Any] | None = None, **serve: Any) -> Iterator[Setting]:
    permits: list[InProcessPermits] = []

    def permits_of(provider: Provider) -> InProcessPermits:
        permits.append(InProcessPermits(provider.limits.to_limits()))
        return permits[-1]

    def build(settings: GatewaySettings) -> Gateway:
        return build_gateway(settings, permits=permits_of)

    with upstream_world() as upstream:
        main = provider_at(upstream.url, **(provider or {}))
        with gateway_world({"main": main}, serve, build) as world:
            yield Setting(world, upstream, permits)


def error(answer: httpx.Response) -> tuple[int, str]:
    told = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]
    return answer.status_code, told["code"]
