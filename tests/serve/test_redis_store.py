"""Answers that replicas share in a real Redis."""

from __future__ import annotations

import asyncio

import pytest

from serve.cache.redis_store import AHEAD_SECONDS, LARGEST_BYTES, PREFIX, RedisStore
from serve.cache.store import MemoryStore
from tests.redis_server import RedisServer, redis_server
from tests.serve.redis_replicas import KEY, OTHER, PATIENT_SECONDS, Clock, replica, wait_until_gone

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty")]


@pytest.fixture
def clock() -> Clock:
    return Clock()


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
