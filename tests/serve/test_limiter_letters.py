"""Letters to the limiter of a cluster: few of them, and none whose loss would matter. The actor is
the real one, in this process."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from ray.exceptions import RayActorError

from serve.ask import holders, limiter_link, limiter_server
from serve.ask.errors import BreakerOpen
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_line import Address
from serve.ask.limiter_link import LimiterAway
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Lease, Limits, Outcome
from tests.serve.limiter_carrier import HOST, Carrier, client_of

Start = Callable[..., tuple[Carrier, RayPermits]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """A carrier, and a client whose every letter goes through it."""

    def started(limits: Limits, **carrier: Any) -> tuple[Carrier, RayPermits]:
        handle = Carrier(**carrier)
        return handle, client_of(handle, monkeypatch, limits)

    return started


async def all_of(*work: Coroutine[Any, Any, Any]) -> None:
    async with asyncio.timeout(20):
        await asyncio.gather(*work)


async def nothing_left(permits: RayPermits) -> None:
    """Wait until nobody waits or holds a lease: the last letters may be on their way."""
    for _ in range(200):
        stats = await permits.stats()
        if not stats.in_use and not any(stats.waiting.values()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(stats)


async def test_however_many_ask_few_letters_are_written(start: Start) -> None:
    carrier, permits = start(Limits(max_concurrency=1000))

    async def one() -> None:
        lease = await permits.acquire("online", 10)
        await asyncio.sleep(0)
        permits.settle_soon(lease, Outcome("ok", tokens=10))

    await all_of(*(one() for _ in range(500)))
    await nothing_left(permits)
    assert (await permits.stats()).granted == 500
    assert carrier.letters < 200


async def test_who_is_alone_waits_for_one_letter(start: Start) -> None:
    carrier, permits = start(Limits())
    lease = await permits.acquire("online", 10)
    assert carrier.letters == 1
    assert not (await permits.settle(lease, Outcome("ok"))).breaker_open
    assert carrier.letters == 2
    for _ in range(3):
        lease = await permits.acquire("online", 10)
        permits.settle_soon(lease, Outcome("ok"))
    assert carrier.letters == 5, "a lease that has ended goes with the next ticket"
    await nothing_left(permits)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("restarts", [False, True])
async def test_nobody_is_forgotten_however_many_letters_are_lost(
    start: Start, seed: int, restarts: bool
) -> None:
    carrier, permits = start(Limits(max_concurrency=8), lost=0.3, seed=seed)
    held: set[str] = set()
    served = 0

    async def one(number: int) -> None:
        nonlocal served
        lease = await permits.acquire("fast", 10)
        assert lease.id not in held, "no lease is given twice"
        held.add(lease.id)
        assert restarts or len(held) <= 8
        await asyncio.sleep(0.001)
        held.remove(lease.id)
        await permits.settle(lease, Outcome("ok", tokens=10))
        served += 1
        if restarts and number % 20 == 7:
            carrier.restart(LimiterActor(Limits(), host=HOST))

    await all_of(*(one(number) for number in range(60)))
    assert served == 60
    await nothing_left(permits)


async def test_a_token_for_a_retry_is_had_however_many_letters_are_lost(start: Start) -> None:
    _, permits = start(Limits(), lost=0.5)
    leaving = asyncio.ensure_future(permits.retry_token())
    await asyncio.sleep(0)
    leaving.cancel()
    await all_of(*(permits.retry_token() for _ in range(3)))
    assert (await permits.stats()).retries >= 3


async def test_who_leaves_leaves_nothing_behind_whenever_that_is(start: Start) -> None:
    _, permits = start(Limits(max_concurrency=3))
    chance = random.Random(5)

    async def hasty() -> None:
        asking = asyncio.ensure_future(permits.acquire("online", 10))
        await asyncio.sleep(chance.uniform(0, 0.006))
        asking.cancel()
        try:
            lease = await asking
        except asyncio.CancelledError:
            return
        permits.settle_soon(lease, Outcome("unsent"))

    await all_of(*(hasty() for _ in range(200)))
    await nothing_left(permits)
    lease = await permits.acquire("online", 10)
    assert isinstance(lease, Lease)


async def test_who_asks_while_the_breaker_is_open_is_told_and_others_wait(start: Start) -> None:
    _, permits = start(Limits())
    for _ in range(5):
        lease = await permits.acquire("fast", 1)
        settled = await permits.settle(lease, Outcome("unavailable", status=503))
    assert settled.breaker_open
    waiting = asyncio.ensure_future(permits.acquire("fast", 1))
    with pytest.raises(BreakerOpen):
        await permits.acquire("online", 1)
    assert not waiting.done()
    waiting.cancel()


async def test_whatever_a_provider_says_goes_through(start: Start) -> None:
    _, permits = start(Limits(max_concurrency=1))
    said = {
        "x-ratelimit-limit-requests": "\udcff",
        "x-ratelimit-remaining-requests": "9" * 10_000,
        "x-ratelimit-limit-tokens": "2000",
        "x-ratelimit-anything": "x" * 10_000,
    }
    for outcome in (
        Outcome("ok", tokens=10**40, headers=said, status=200),
        Outcome("rate_limited", retry_after=0.0, headers=said, status=429),
    ):
        await permits.settle(await permits.acquire("fast", 1), outcome)
    assert (await permits.stats()).in_use == 0
    assert (await permits.stats()).rate_limited == 1


async def test_an_actor_that_cannot_be_had_is_an_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_link, "LOST_SECONDS", 0.1)
    carrier, permits = start(Limits())
    carrier.away = True
    with pytest.raises(RayActorError):
        await permits.acquire("online", 1)
    with pytest.raises(RayActorError):
        await permits.stats()
    carrier.away = False
    await permits.acquire("online", 1)


async def test_an_actor_whose_port_cannot_be_reached_is_an_error_that_says_so(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_link, "LOST_SECONDS", 0.1)
    carrier, permits = start(Limits())
    with socket.socket() as closed:
        closed.bind((HOST, 0))
        port = closed.getsockname()[1]

        async def nowhere() -> Address:
            return Address(HOST, port, b"")

        monkeypatch.setattr(carrier, "_address", nowhere)
        with pytest.raises(LimiterAway, match=f"{HOST}:{port}.*ports"):
            await permits.acquire("online", 1)


async def test_an_actor_that_is_silent_is_asked_anew(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_link, "ANSWER_SECONDS", 0.02)
    carrier, permits = start(Limits(max_concurrency=1))
    carrier.there.clear()
    asking = asyncio.ensure_future(permits.acquire("online", 1))
    await carrier.written(3)
    monkeypatch.setattr(limiter_link, "ANSWER_SECONDS", 5.0)
    carrier.there.set()
    await permits.settle(await asyncio.wait_for(asking, 5), Outcome("ok"))
    await nothing_left(permits)


async def test_who_was_forgotten_presents_itself_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_server, "WATCH_SECONDS", 0.001)
    monkeypatch.setattr(holders, "REMEMBERED_SECONDS", 0.0)
    carrier, permits = start(Limits(max_concurrency=1))
    for _ in range(3):
        await permits.stats()
        await carrier.no_lines()
    monkeypatch.setattr(holders, "REMEMBERED_SECONDS", 600.0)
    await permits.settle(await permits.acquire("online", 1), Outcome("ok"))
    await nothing_left(permits)
