"""Replicas that share answers in a real Redis.

Invariant: time passes for them when a test says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from serve.cache.redis_store import RedisStore
from serve.cache.store import MemoryStore
from tests.redis_server import RedisServer

PATIENT_SECONDS = 5.0
"""For a Redis that is there: this machine may be busy."""
KEY, OTHER = b"k" * 32, b"o" * 32


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def wait_until_shared(store: RedisStore, key: bytes) -> None:
    """Until this replica finds what another has kept."""
    async with asyncio.timeout(60):
        while await store.get(key) is None:  # noqa: ASYNC110  # it lies in another process
            await asyncio.sleep(0.01)


def wait_until_gone(server: RedisServer, name: bytes) -> None:
    """Until nothing lies in Redis under the name."""
    with server.client() as client:
        while client.exists(name):
            time.sleep(0.005)


@asynccontextmanager
async def replica(
    url: str, clock: Clock, budget: float = PATIENT_SECONDS
) -> AsyncIterator[RedisStore]:
    """A replica's store, closed in the end."""
    store = RedisStore(url, MemoryStore(64 * 2**20, clock), budget, clock)
    try:
        yield store
    finally:
        await store.aclose()
