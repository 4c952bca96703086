"""What goes wrong between a client and the limiter of a cluster without its loss: nobody waits for
ever, and no permit stays with who is done. The actor is the real one, in this process."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_letters import Reply
from serve.ask.limiter_line import Address, Line
from serve.ask.limiter_link import LimiterAway
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Limits, Outcome
from tests.serve.limiter_carrier import HOST, Carrier, client_of

ONE = Limits(max_concurrency=1)


@pytest.fixture
async def carrier() -> Carrier:
    return Carrier(ONE)


@pytest.fixture
def permits(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> RayPermits:
    """A client whose every letter goes through the carrier."""
    return client_of(carrier, monkeypatch, ONE)


async def goes_on(permits: RayPermits) -> None:
    """As it does only where nobody holds the permit, and where clients are answered again."""
    async with asyncio.timeout(5):
        await permits.settle(await permits.acquire("online", 10), Outcome("ok"))
        assert (await permits.stats()).in_use == 0


async def test_a_letter_that_cannot_be_written_is_an_error_and_what_had_ended_is_told_of_later(
    permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await permits.acquire("online", 10)

    def say(line: Line, value: object) -> None:
        raise OverflowError("Integer value out of range")

    with monkeypatch.context() as broken:
        broken.setattr(Line, "say", say)
        permits.settle_soon(lease, Outcome("ok"))
        with pytest.raises(OverflowError):
            await asyncio.wait_for(permits.stats(), 5)
        with pytest.raises(OverflowError):
            await asyncio.wait_for(permits.acquire("online", 10), 5)
    await goes_on(permits)


async def test_who_settles_does_not_wait_for_a_letter_that_cannot_be_written(
    permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await permits.acquire("online", 10)
    monkeypatch.setattr("serve.ask.limiter_actor.SETTLE_SECONDS", 60.0)

    def say(line: Line, value: object) -> None:
        raise OverflowError("Integer value out of range")

    with monkeypatch.context() as broken:
        broken.setattr(Line, "say", say)
        settled = await asyncio.wait_for(permits.settle(lease, Outcome("ok")), 5)
    assert not settled.breaker_open
    await goes_on(permits)


@pytest.mark.parametrize("odd", [{"breaker_open": (True,) * 3}, {"stats": {"no": 1}}])
async def test_a_reply_that_does_not_fit_its_letter_is_an_error(
    carrier: Carrier, permits: RayPermits, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    lease = await permits.acquire("online", 10)
    answer = carrier.actor.answer
    with monkeypatch.context() as broken:
        broken.setattr(
            carrier.actor,
            "answer",
            lambda client, letter: Reply(**{**answer(client, letter)._asdict(), **odd}),
        )
        in_one_letter = permits.settle(lease, Outcome("ok")), permits.stats()
        async with asyncio.timeout(5):
            _, stats = await asyncio.gather(*in_one_letter, return_exceptions=True)
    assert isinstance(stats, ValueError | TypeError)
    await goes_on(permits)


async def test_an_actor_that_does_not_say_where_it_listens_is_an_error_and_loses_nothing(
    carrier: Carrier, permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await permits.acquire("online", 10)

    async def nowhere() -> Address:
        raise OSError("no port is free")

    with monkeypatch.context() as broken:
        broken.setattr(carrier, "_address", nowhere)
        carrier.cut()
        await carrier.no_lines()
        permits.settle_soon(lease, Outcome("ok"))
        with pytest.raises(OSError, match="no port"):
            await asyncio.wait_for(permits.stats(), 5)
    await goes_on(permits)


async def test_who_waits_when_nobody_writes_any_more_is_told(
    carrier: Carrier, permits: RayPermits
) -> None:
    lease = await permits.acquire("online", 10)
    carrier.there.clear()
    permits.settle_soon(lease, Outcome("ok"))
    asking = asyncio.ensure_future(permits.stats())
    await carrier.next("letter")
    (writing,) = [
        task
        for task in asyncio.all_tasks()
        if "_exchange" in getattr(task.get_coro(), "__name__", "")
    ]
    writing.cancel()
    with pytest.raises(LimiterAway):
        await asyncio.wait_for(asking, 5)
    carrier.there.set()
    await goes_on(permits)


async def test_an_actor_that_could_not_listen_tries_again_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def full(*_: object, **__: object) -> asyncio.Server:
        raise OSError("no port is free")

    with monkeypatch.context() as broken:
        broken.setattr(asyncio.get_running_loop(), "create_server", full)
        actor = LimiterActor(ONE, host=HOST)
        for _ in range(2):
            with pytest.raises(OSError, match="no port"):
                await actor.address()
    address = await actor.address()
    assert await actor.address() == address
    with socket.create_connection((HOST, address.port), 5):
        pass
