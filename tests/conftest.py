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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests are shared out by group: one process has all that start Ray, so that there is one
    cluster at a time, and a module stays together with what it has set up."""
    for item in items:
        group = "ray" if item.get_closest_marker("ray") else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
