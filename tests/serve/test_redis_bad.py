"""What speaks no protocol of Redis, or too slowly, costs hits and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from serve.ask.redis_place import RedisPlace
from serve.cache.redis_link import BUDGET_SECONDS, RedisAway, RedisLink
from serve.cache.redis_store import RedisStore
from serve.cache.store import MemoryStore

Reply = Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def answering(reply: Reply) -> AsyncIterator[str]:
    """The URL of what answers whatever it reads by `reply`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(1 << 16):
            writer.write(await reply(said))
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"


@pytest.mark.parametrize(
    "said",
    [b"$abc\r\n", b":5\r\n", b"*1\r\n$1\r\na\r\n", b"*1\r\n" * 5000, b"$99999999999\r\n", b"!\r\n"],
)
async def test_what_is_no_reply_is_a_redis_that_is_away(said: bytes) -> None:
    async def reply(_: bytes) -> bytes:
        return said

    async with answering(reply) as url:
        store = RedisStore(url, MemoryStore(2**20, time.monotonic))
        async with asyncio.timeout(5):
            assert await store.get(b"key") is None
            assert await store.add(b"key", b"mine", 60)
            await store.delete(b"key")
            await store.aclose()


async def test_nobody_waits_longer_than_two_budgets_behind_others() -> None:
    async def reply(said: bytes) -> bytes:
        await asyncio.sleep(0.8 * BUDGET_SECONDS)
        return b"$-1\r\n" * said.count(b"GET")

    async with answering(reply) as url:
        link = RedisLink(RedisPlace.of(url))
        waited: list[float] = []

        async def ask(number: int) -> bool:
            since = time.monotonic()
            try:
                await link.do(b"GET", b"%d" % number)
            except RedisAway:
                return False
            finally:
                waited.append(time.monotonic() - since)
            return True

        answered = await asyncio.gather(*(ask(number) for number in range(1_200)))
        await link.aclose()
    assert answered[0]
    assert not answered[-1]
    # Ten batches of four fifths of a budget each, one after the other, would take eight.
    assert max(waited) < 5 * BUDGET_SECONDS
