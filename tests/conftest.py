"""What holds for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.redis_server import RedisServer

# What is collected stays, and looking through it for garbage takes a quarter of the time.
gc.disable()

# Nothing here speaks TLS, for which every client reads all certificates of the machine: 25 ms each.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

# How long a case takes says how busy the machine is, not whether the code is right. Every run draws
# other examples.
settings.register_profile(
    "any-machine",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
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


def pytest_collection_finish() -> None:
    """Look for garbage from now on, among what the tests make."""
    gc.freeze()
    gc.enable()
