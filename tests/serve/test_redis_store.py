"""Answers that replicas share in a real Redis, also while it is slow, gone or full."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from serve.cache import redis_store
from serve.cache.redis_link import BUDGET_SECONDS, PAUSE_SECONDS, WAITING
from serve.cache.redis_store import AHEAD_SECONDS, LARGEST_BYTES, PREFIX, RedisStore
from serve.cache.store import MemoryStore
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.slow

PATIENT_SECONDS = 5.0
"""For a Redis that is there: this machine may be busy."""
KEY, OTHER = b"k" * 32, b"o" * 32


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as running:
        yield running


@pytest.fixture(autouse=True)
def empty(server: RedisServer) -> None:
    server.clear()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def wait_until_shared(store: RedisStore, key: bytes) -> None:
    async with asyncio.timeout(10):
        while await store.get(key) is None:  # noqa: ASYNC110  # it lies in another process
            await asyncio.sleep(0.01)


def wait_until_gone(server: RedisServer, name: bytes) -> None:
    with server.client() as client:
        while client.exists(name):
            time.sleep(0.005)


@asynccontextmanager
async def replica(
    url: str, clock: Clock, budget: float = PATIENT_SECONDS
) -> AsyncIterator[RedisStore]:
    store = RedisStore(url, MemoryStore(64 * 2**20, clock), budget, clock)
    try:
        yield store
    finally:
        await store.aclose()


async def test_replicas_share_what_is_kept(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as one, replica(server.url, clock) as two:
        assert await two.get(KEY) is None
        await one.set(KEY, b"\x00 answer", 60)
        assert await two.get(KEY) == b"\x00 answer"
        await one.set(KEY, b"another", 60)
        assert await two.get(KEY) == b"\x00 answer"  # Out of its own memory, for a moment.
        clock.now += AHEAD_SECONDS
        assert await two.get(KEY) == b"another"
        await two.delete(KEY)
        clock.now += AHEAD_SECONDS
        assert await one.get(KEY) is None
        with server.client() as client:
            assert client.keys("*") == []


async def test_redis_forgets_when_the_time_is_over(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as store:
        await store.set(KEY, b"answer", 0.05)
        await store.set(OTHER, b"answer", 90.5)
        with server.client() as client:
            assert 90_000 < int(client.pttl(PREFIX + OTHER.hex().encode())) <= 90_500
        wait_until_gone(server, PREFIX + KEY.hex().encode())
        clock.now += AHEAD_SECONDS
        assert await store.get(KEY) is None
        assert await store.get(OTHER) == b"answer"


async def test_of_many_replicas_that_add_one_gets_it(server: RedisServer, clock: Clock) -> None:
    stores = [
        RedisStore(server.url, MemoryStore(2**20, clock), PATIENT_SECONDS, clock) for _ in range(8)
    ]
    for key in (KEY, OTHER):
        got = await asyncio.gather(*(store.add(key, b"mine", 60) for store in stores * 2))
        assert sorted(got) == [False] * 15 + [True]
    for store in stores:
        await store.aclose()


async def test_many_at_once_take_one_connection(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as store:
        keys = [b"%032d" % number for number in range(500)]
        await asyncio.gather(*(store.set(key, key, 60) for key in keys))
        clock.now += AHEAD_SECONDS
        assert await asyncio.gather(*(store.get(key) for key in keys)) == keys
        with server.client() as client:
            assert len(client.client_list()) == 2  # And the one that looks.


async def test_a_restart_costs_hits_and_nothing_else(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as store:
        await store.set(KEY, b"answer", 600)
        clock.now += AHEAD_SECONDS
        server.kill()
        try:
            assert await store.get(KEY) is None
            began = time.monotonic()
            for number in range(1_000):
                assert await store.get(b"%032d" % number) is None
            assert time.monotonic() - began < 0.5
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
        await asyncio.wait_for(gone, 10)
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
        async with asyncio.timeout(10):
            while one._owed:  # noqa: ASYNC110  # nothing that another replica could notice
                await asyncio.sleep(0.01)
        clock.now += AHEAD_SECONDS
        assert await two.get(KEY) == b"under way"


@pytest.mark.parametrize("junk", [b"", b"nonsense", b"\x00\x02\xff\xff{}", None])
async def test_what_no_replica_wrote_is_a_miss_and_deleted(
    server: RedisServer, clock: Clock, junk: bytes | None
) -> None:
    async with replica(server.url, clock) as store:
        for act in (store.get(KEY), store.add(KEY, b"mine", 60)):
            with server.client() as client:
                if junk is None:
                    client.lpush(PREFIX + KEY.hex().encode(), "another type")
                else:
                    client.set(PREFIX + KEY.hex().encode(), junk)
            assert await act in (None, True)
            clock.now += AHEAD_SECONDS
        assert await store.get(KEY) == b"mine"


async def test_a_value_that_changed_or_moved_is_a_miss(server: RedisServer, clock: Clock) -> None:
    async with replica(server.url, clock) as store:
        await store.set(KEY, b"an answer", 60)
        with server.client() as client:
            client.copy(PREFIX + KEY.hex().encode(), PREFIX + OTHER.hex().encode())
            client.setrange(PREFIX + KEY.hex().encode(), 15, b"X")
        clock.now += AHEAD_SECONDS
        assert await store.get(KEY) is None
        assert await store.get(OTHER) is None


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
        began = time.monotonic()
        found = await asyncio.gather(*(store.get(b"%032d" % n) for n in range(WAITING + 200)))
        assert found == [None] * len(found)
        # Each waits for the batch before its own and for its own.
        assert time.monotonic() - began < 10 * BUDGET_SECONDS
        # The third budget in a row that runs out is the last one.
        assert await store.get(KEY) is None
        seen = asked
        assert await store.get(KEY) is None
        assert asked == seen


async def test_what_a_caller_that_leaves_has_asked_answers_nobody_else(
    server: RedisServer, clock: Clock
) -> None:
    async with replica(server.url, clock) as store:
        await store.set(KEY, b"one", 60)
        await store.set(OTHER, b"two", 60)
        clock.now += AHEAD_SECONDS
        for turn in range(20):
            leaving = asyncio.create_task(store.get(KEY))
            for _ in range(turn):
                await asyncio.sleep(0)
            leaving.cancel()
            assert await store.get(OTHER) == b"two"
            clock.now += AHEAD_SECONDS


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


async def test_what_is_too_large_to_share_replaces_what_was_shared(
    server: RedisServer, clock: Clock
) -> None:
    large = bytes(LARGEST_BYTES + 1)
    async with replica(server.url, clock) as one, replica(server.url, clock) as two:
        assert await one.add(KEY, b"claimed", 60)
        await one.set(KEY, large, 60)
        assert await one.get(KEY) == large
        assert await two.get(KEY) is None


async def test_the_password_is_used_and_told_nowhere(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tcp=True, password="s3cret") as locked:
        right = f"redis://:s3cret@127.0.0.1:{locked.port}/0"
        async with replica(right, clock) as store:
            await store.set(KEY, b"answer", 60)
            clock.now += AHEAD_SECONDS
            assert await store.get(KEY) == b"answer"
        async with replica(right.replace("s3cret", "s3cretly-wrong"), clock) as store:
            assert await store.get(KEY) is None
    assert f"redis://127.0.0.1:{locked.port}/0 is not asked" in caplog.text
    assert "s3cret" not in caplog.text


async def test_closing_leaves_nobody_waiting(server: RedisServer, clock: Clock) -> None:
    store = RedisStore(server.url, MemoryStore(2**20, clock), PATIENT_SECONDS, clock)
    waiting = asyncio.create_task(store.get(KEY))
    await asyncio.sleep(0)
    await store.aclose()
    assert await waiting is None
    assert await store.get(KEY) is None
