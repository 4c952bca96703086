"""What the tests of the gateway begin with: an upstream that answers as it is told, a gateway in
front of it, and a client. A module that needs another one of these has its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.serve.gateway_chat import PRICES
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream, upstream_world


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with upstream_world() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def world(upstream: Upstream) -> Iterator[World]:
    with gateway_world({"main": provider_at(upstream.url, prices=PRICES)}) as world:
        yield world


@pytest.fixture
def http(world: World, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.begin_anew()
    upstream.bodies.clear()
    with httpx.Client(base_url=world.url) as client:
        yield client
