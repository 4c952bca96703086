"""Letters to the limiter of a cluster whose replies are lost, and who leaves meanwhile: whatever
comes of it, no permit is held by nobody. The actor is the real one, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from ray.exceptions import RayActorError

from serve.ask import limiter_link
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Lease, Limits, Outcome
from tests.serve.limiter_carrier import HOST, Carrier, client_of

ONE = Limits(max_concurrency=1)


@pytest.fixture
async def carrier() -> Carrier:
    return Carrier(ONE)


@pytest.fixture
def permits(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> RayPermits:
    """A client whose every letter goes through the carrier."""
    return client_of(carrier, monkeypatch, ONE)


async def other_client(actor: LimiterActor) -> tuple[RayPermits, Lease]:
    """Another client, which is not cut off, and holds the only permit of `actor`."""
    carrier = Carrier(ONE)
    carrier.actor = actor
    with pytest.MonkeyPatch.context() as patch:
        other = client_of(carrier, patch, ONE)
    return other, await other.acquire("fast", 10)


async def one_call(permits: RayPermits) -> None:
    """As it is only where no permit is held by nobody."""
    async with asyncio.timeout(2):
        lease = await permits.acquire("online", 10)
        await permits.settle(lease, Outcome("ok"))
    assert (await permits.stats()).in_use == 0


async def test_what_waits_and_what_is_under_way_is_asked_for_once_of_the_next_actor(
    carrier: Carrier, permits: RayPermits
) -> None:
    await permits.acquire("online", 10)
    first = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("reply")
    actor = LimiterActor(ONE, host=HOST)
    other, held = await other_client(actor)
    carrier.there.clear()
    second = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("letter")
    carrier.restart(actor)
    carrier.there.set()
    await carrier.next("reply")
    assert (await other.stats()).waiting["fast"] == 2
    await other.settle(held, Outcome("ok"))
    done, left = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1, "there is one permit"
    permits.settle_soon(await done.pop(), Outcome("ok"))
    permits.settle_soon(await asyncio.wait_for(left.pop(), 5), Outcome("ok"))
    await one_call(permits)
    assert (await permits.stats()).granted == 4


async def test_who_leaves_before_a_lost_letter_is_repeated_leaves_no_permit_behind(
    carrier: Carrier, permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrier.losing = 1
    asking = asyncio.ensure_future(permits.acquire("online", 10))
    loop = asyncio.get_running_loop()

    def find(name: str, limits: Limits) -> Carrier:
        loop.call_soon_threadsafe(asking.cancel)
        return carrier

    monkeypatch.setattr(limiter_link, "find_server", find)
    with contextlib.suppress(asyncio.CancelledError):
        permits.settle_soon(await asking, Outcome("unsent"))
    await one_call(permits)


async def test_what_is_decided_while_a_client_is_cut_off_it_hears_afterwards(
    carrier: Carrier, permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, held = await other_client(carrier.actor)
    patient = asyncio.ensure_future(permits.acquire("slow", 10))
    await carrier.next("reply")
    loop, looking, found = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def find(name: str, limits: Limits) -> Carrier:
        loop.call_soon_threadsafe(looking.set)
        found.wait(5)
        return carrier

    monkeypatch.setattr(limiter_link, "find_server", find)
    carrier.losing = 1
    asking = asyncio.ensure_future(permits.acquire("online", 10))
    await asyncio.wait_for(looking.wait(), 5)
    await other.settle(held, Outcome("ok"))
    assert (await other.stats()).in_use == 1
    found.set()
    permits.settle_soon(await asyncio.wait_for(asking, 5), Outcome("ok"))
    permits.settle_soon(await asyncio.wait_for(patient, 5), Outcome("ok"))
    await one_call(permits)
    assert (await permits.stats()).granted == 4


async def test_a_permit_for_who_gave_up_meanwhile_is_given_back(
    carrier: Carrier, permits: RayPermits, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, held = await other_client(carrier.actor)
    waiting = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("reply")
    monkeypatch.setattr(limiter_link, "LOST_SECONDS", 0.0)
    carrier.away = True
    carrier.cut()
    with pytest.raises(RayActorError):
        await asyncio.wait_for(waiting, 5)
    await other.settle(held, Outcome("ok"))
    assert (await other.stats()).in_use == 1, "granted to who is not there"
    carrier.away = False
    await one_call(permits)


async def test_a_lease_that_is_held_while_the_line_breaks_is_still_held(
    carrier: Carrier, permits: RayPermits
) -> None:
    lease = await permits.acquire("online", 10)
    carrier.cut()
    assert (await permits.stats()).in_use == 1
    waiting = asyncio.ensure_future(permits.acquire("online", 10))
    await carrier.next("reply")
    assert not waiting.done()
    await permits.settle(lease, Outcome("ok"))
    await permits.settle(await asyncio.wait_for(waiting, 5), Outcome("ok"))
    await one_call(permits)
