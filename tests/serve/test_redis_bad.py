"""What speaks no protocol of Redis, or too slowly, costs hits and nothing else."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from serve.ask.redis_place import RedisPlace
from serve.cache.redis_link import BUDGET_SECONDS, TOGETHER, RedisAway, RedisLink
from serve.cache.redis_store import RedisStore
from serve.cache.store import MemoryStore
from tests.serve.virtual_loop import run_virtually

Reply = Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def answering(reply: Reply) -> AsyncIterator[str]:
    """The URL of what answers whatever it reads by `reply`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(1 << 16):
            writer.write(await reply(said))
        writer.close()

    with tempfile.TemporaryDirectory() as folder:
        async with await asyncio.start_unix_server(talk, f"{folder}/redis"):
            yield f"unix://{folder}/redis"


@pytest.mark.parametrize(
    "said",
    [b"$abc\r\n", b":5\r\n", b"*1\r\n$1\r\na\r\n", b"*1\r\n" * 5000, b"$99999999999\r\n", b"!\r\n"],
)
async def test_what_is_no_reply_is_a_redis_that_is_away(said: bytes) -> None:
    async def reply(_: bytes) -> bytes:
        return said

    async with answering(reply) as url:
        store = RedisStore(url, MemoryStore(2**20, time.monotonic))
        async with asyncio.timeout(60):
            assert await store.get(b"key") is None
            assert await store.add(b"key", b"mine", 60)
            await store.delete(b"key")
            await store.aclose()


def test_nobody_waits_longer_than_two_budgets_behind_others() -> None:
    async def reply(said: bytes) -> bytes:
        await asyncio.sleep(0.8 * BUDGET_SECONDS)
        return b"$-1\r\n" * said.count(b"GET")

    async def main() -> None:
        now = asyncio.get_running_loop().time
        async with answering(reply) as url:
            link = RedisLink(RedisPlace.of(url), clock=now)
            waited: list[float] = []

            async def ask(number: int) -> bool:
                since = now()
                try:
                    await link.do(b"GET", b"%d" % number)
                except RedisAway:
                    return False
                finally:
                    waited.append(now() - since)
                return True

            answered = await asyncio.gather(*(ask(number) for number in range(1_200)))
            await link.aclose()
        # A batch takes four fifths of a budget: two fit within two budgets, of ten.
        assert answered == [True] * 2 * TOGETHER + [False] * (1_200 - 2 * TOGETHER)
        assert max(waited) == pytest.approx(2 * BUDGET_SECONDS)

    run_virtually(main())
