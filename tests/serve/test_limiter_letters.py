"""Letters to the limiter of a cluster: few of them, and none whose loss would matter. The actor is
the real one, in this process; what carries the letters is not Ray."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from ray.exceptions import ActorUnavailableError, RayActorError

from serve.ask import limiter_actor, limiter_link
from serve.ask.errors import BreakerOpen
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Lease, Limits, Outcome


class Carrier:
    """A handle to an actor that takes its time, and loses calls before or after they were heard
    with probability `lost`."""

    def __init__(self, lost: float = 0.0, seed: int = 0) -> None:
        self.actor = LimiterActor(Limits())
        self.calls: Counter[str] = Counter()
        self._lost = lost
        self._random = random.Random(seed)

    def __getattr__(self, method: str) -> Any:
        carrier = self

        class Method:
            @staticmethod
            def remote(*args: Any) -> Any:
                # A call to a Ray actor is under way whether it is waited for or not.
                return asyncio.ensure_future(carrier.call(method, args))

        return Method

    async def call(self, method: str, args: tuple[Any, ...]) -> Any:
        self.calls[method] += 1
        actor = self.actor
        await asyncio.sleep(0.001)
        if self._random.random() < self._lost / 2:
            raise ActorUnavailableError("lost on the way there", None)
        answer = await getattr(actor, method)(*args)
        if self._random.random() < self._lost / 2:
            raise ActorUnavailableError("lost on the way back", None)
        if actor is not self.actor:
            raise RayActorError
        return answer


Start = Callable[..., tuple[Carrier, RayPermits]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """A carrier, and a client whose every call goes through it."""

    def started(limits: Limits, **carrier: Any) -> tuple[Carrier, RayPermits]:
        handle = Carrier(**carrier)
        monkeypatch.setattr(limiter_link, "find_server", lambda name, limits: handle)
        monkeypatch.setattr(limiter_actor, "LOST_PAUSE_SECONDS", 0.001)
        monkeypatch.setattr(limiter_link, "LOST_PAUSE_SECONDS", 0.001)
        return handle, RayPermits("http://nowhere/v1", None, limits)

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
    assert carrier.calls["exchange"] + carrier.calls["collect"] < 200


async def test_who_is_alone_waits_for_one_letter(start: Start) -> None:
    carrier, permits = start(Limits())
    lease = await permits.acquire("online", 10)
    assert carrier.calls["exchange"] == 1
    assert not (await permits.settle(lease, Outcome("ok"))).breaker_open
    assert carrier.calls["exchange"] == 2
    for _ in range(3):
        lease = await permits.acquire("online", 10)
        permits.settle_soon(lease, Outcome("ok"))
    assert carrier.calls["exchange"] == 5, "a lease that has ended goes with the next ticket"
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
            carrier.actor = LimiterActor(Limits())

    await all_of(*(one(number) for number in range(60)))
    assert served == 60
    await nothing_left(permits)


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


async def test_an_actor_that_cannot_be_had_is_an_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_link, "LOST_SECONDS", 0.1)
    _, permits = start(Limits(), lost=2.0)
    with pytest.raises(RayActorError):
        await permits.acquire("online", 1)
