"""Answers that replicas share in a real Redis, while it is slow, gone or full."""

from __future__ import annotations

import asyncio

import pytest

from serve.cache import redis_store
from serve.cache.redis_link import BUDGET_SECONDS, PAUSE_SECONDS, WAITING
from serve.cache.redis_store import AHEAD_SECONDS, PREFIX
from tests.redis_server import RedisServer
from tests.serve.redis_replicas import (
    KEY,
    OTHER,
    Clock,
    replica,
    wait_until_gone,
    wait_until_shared,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty")]


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_restart_costs_hits_and_nothing_else(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as store:
        await store.set(KEY, b"answer", 600)
        clock.now += AHEAD_SECONDS
        server.kill()
        try:
            assert await store.get(KEY) is None
            for number in range(1_000):
                assert await store.get(b"%032d" % number) is None
            # For so long the replica is by itself.
            assert await store.add(OTHER, b"mine", 60)
            assert not await store.add(OTHER, b"mine", 60)
            await store.set(KEY, b"its own", 60)
            clock.now += AHEAD_SECONDS
            assert await store.get(KEY) == b"its own"
        finally:
            server.start()
        clock.now += PAUSE_SECONDS
        assert await store.get(OTHER) == b"mine"


async def test_what_was_kept_or_deleted_meanwhile_is_handed_on_by_an_idle_replica(
    server: RedisServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "PAY_SECONDS", 0.01)
    async with replica(server.url, clock) as one, replica(server.url, clock) as two:
        assert await one.add(OTHER, b"under way", 600)
        server.kill()
        try:
            await one.set(KEY, b"answer", 100)
            await one.delete(OTHER)
            assert await one.get(OTHER) is None
        finally:
            server.start()
        clock.now += 40
        gone = asyncio.to_thread(wait_until_gone, server, PREFIX + OTHER.hex().encode())
        await asyncio.wait_for(gone, 60)
        await wait_until_shared(two, KEY)
        assert await two.get(KEY) == b"answer"
        assert await two.add(OTHER, b"another", 60)
        with server.client() as client:
            assert 30_000 < int(client.pttl(PREFIX + KEY.hex().encode())) <= 60_000


async def test_what_another_replica_has_written_meanwhile_is_not_deleted(
    server: RedisServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "PAY_SECONDS", 0.01)
    async with replica(server.url, clock) as one, replica(server.url, clock) as two:
        assert await one.add(KEY, b"under way", 600)
        server.kill()
        try:
            await one.delete(KEY)
        finally:
            server.start()
        server.clear()  # It came back without what it held.
        assert await two.add(KEY, b"under way", 600)
        await one.set(OTHER, b"the last that is owed", 60)
        clock.now += PAUSE_SECONDS
        await wait_until_shared(two, OTHER)
        async with asyncio.timeout(60):
            while one._owed:  # noqa: ASYNC110  # nothing that another replica could notice
                await asyncio.sleep(0.01)
        clock.now += AHEAD_SECONDS
        assert await two.get(KEY) == b"under way"


async def test_nobody_waits_for_a_redis_that_hangs(clock: Clock) -> None:
    asked = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while await reader.read(1 << 16):
            asked += 1
        writer.close()

    hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = hanging.sockets[0].getsockname()[1]
    async with hanging, replica(f"redis://127.0.0.1:{port}/0", clock, BUDGET_SECONDS) as store:
        found = await asyncio.gather(*(store.get(b"%032d" % n) for n in range(WAITING + 200)))
        assert found == [None] * len(found)
        # The third budget in a row that runs out is the last one.
        assert asked <= 3
        assert await store.get(KEY) is None
        seen = asked
        assert await store.get(KEY) is None
        assert asked == seen


async def test_a_reply_that_comes_too_late_answers_nobody_else(
    server: RedisServer, clock: Clock
) -> None:
    async with replica(server.url, clock) as writer, replica(server.url, clock, 0.1) as store:
        await writer.set(KEY, b"one", 60)
        await writer.set(OTHER, b"two", 60)
        await store.get(b"m" * 32)
        with server.client() as client:
            client.client_pause(400)
        assert await store.get(KEY) is None
        while (found := await store.get(OTHER)) is None:
            clock.now += PAUSE_SECONDS
        assert found == b"two"


async def test_a_full_redis_keeps_nothing_and_the_replica_does(
    server: RedisServer, clock: Clock
) -> None:
    async with replica(server.url, clock) as store:
        with server.client() as client:
            client.config_set("maxmemory", 1)
            try:
                await store.set(KEY, b"answer", 60)
                assert await store.get(OTHER) is None
            finally:
                client.config_set("maxmemory", 0)
        clock.now += 30
        assert await store.get(KEY) == b"answer"
