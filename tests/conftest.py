"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.redis_server import RedisServer

# How long a case takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A Redis. A module that needs another one has its own."""
    from tests.redis_server import redis_server  # most tests need none

    with redis_server() as running:
        yield running


@pytest.fixture
def empty(server: RedisServer) -> None:
    """Nothing is in the Redis."""
    server.clear()
