"""Letters to the limiter of a cluster that cross each other, or whose replies are lost: whatever
comes of it, no permit is held by nobody. The actor is the real one, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest
from ray.exceptions import RayActorError

from serve.ask import limiter_actor, limiter_link
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_letters import Caller, OutcomeRow, TicketRow
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Limits, Outcome

ONE = Limits(max_concurrency=1)


class Carrier:
    """A handle to an actor. Letters wait on their way `there` and their replies on their way
    `back`, where these are cleared; as many replies as `losing` says are lost."""

    def __init__(self) -> None:
        self.actor = LimiterActor(ONE)
        self.losing = 0
        self.there, self.back = asyncio.Event(), asyncio.Event()
        self.there.set()
        self.back.set()
        self.happened: dict[tuple[str, str], asyncio.Event] = {}
        self._dead = asyncio.Event()

    def restart(self, actor: LimiterActor) -> None:
        """Calls that wait for the actor fail."""
        self.actor = actor
        self._dead.set()
        self._dead = asyncio.Event()

    async def next(self, what: str, method: str) -> None:
        """Until such a call has been `called` or `heard`, from now on."""
        event = self.happened[what, method] = asyncio.Event()
        await asyncio.wait_for(event.wait(), 5)

    def __getattr__(self, method: str) -> Any:
        carrier = self

        class Method:
            @staticmethod
            def remote(*args: Any) -> Any:
                return asyncio.ensure_future(carrier._call(method, args))

        return Method

    def _tell(self, what: str, method: str) -> None:
        if event := self.happened.get((what, method)):
            event.set()

    async def _call(self, method: str, args: tuple[Any, ...]) -> Any:
        self._tell("called", method)
        if method == "exchange":
            await self.there.wait()
        dead = asyncio.ensure_future(self._dead.wait())
        answer = asyncio.ensure_future(getattr(self.actor, method)(*args))
        await asyncio.wait({dead, answer}, return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()
        if not answer.done():
            answer.cancel()
            raise RayActorError
        self._tell("heard", method)
        if method == "exchange":
            await self.back.wait()
            if self.losing:
                self.losing -= 1
                raise RayActorError
        return answer.result()


@pytest.fixture
async def carrier(monkeypatch: pytest.MonkeyPatch) -> Carrier:
    """Every call of a client goes through it."""
    handle = Carrier()
    monkeypatch.setattr(limiter_link, "find_server", lambda name, limits: handle)
    monkeypatch.setattr(limiter_actor, "LOST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(limiter_link, "LOST_PAUSE_SECONDS", 0.001)
    return handle


def client() -> RayPermits:
    return RayPermits("http://nowhere/v1", None, ONE)


async def one_call(permits: RayPermits) -> None:
    """As it is only where no permit is held by nobody."""
    async with asyncio.timeout(2):
        lease = await permits.acquire("online", 10)
        await permits.settle(lease, Outcome("ok"))
    assert (await permits.stats()).in_use == 0


async def test_what_is_decided_while_its_letter_is_under_way_is_not_asked_for_again(
    carrier: Carrier,
) -> None:
    permits = client()
    await permits.acquire("online", 10)
    first = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("called", "collect")
    # Another client holds the only permit of the next actor, which a letter is on its way to.
    other = Caller("other", ONE, 0, 0)
    actor = LimiterActor(ONE)
    await actor.exchange(other, [TicketRow("others", "fast", 10, 60.0)], [], [])
    carrier.there.clear()
    second = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("called", "exchange")
    # `collect` meets the new actor before the letter does.
    carrier.restart(actor)
    await carrier.next("heard", "collect")
    await carrier.next("called", "collect")
    # And tells what comes of the letter before its reply does.
    carrier.back.clear()
    carrier.there.set()
    await carrier.next("heard", "exchange")
    await actor.exchange(other, [], [OutcomeRow("others", "ok", 10, None, {}, None)], [])
    permits.settle_soon(await asyncio.wait_for(second, 5), Outcome("ok"))
    carrier.back.set()
    permits.settle_soon(await asyncio.wait_for(first, 5), Outcome("ok"))
    await one_call(permits)
    assert (await permits.stats()).granted == 4


async def test_who_leaves_before_a_lost_letter_is_repeated_leaves_no_permit_behind(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    permits = client()
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


async def test_what_is_decided_before_a_lost_letter_is_repeated_is_not_repeated(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    permits = client()
    other = Caller("other", ONE, 0, 0)
    await carrier.actor.exchange(other, [TicketRow("others", "fast", 10, 60.0)], [], [])
    patient = asyncio.ensure_future(permits.acquire("slow", 10))
    await carrier.next("called", "collect")
    loop, looking, found = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def find(name: str, limits: Limits) -> Carrier:
        loop.call_soon_threadsafe(looking.set)
        found.wait(5)
        return carrier

    monkeypatch.setattr(limiter_link, "find_server", find)
    carrier.losing = 1
    asking = asyncio.ensure_future(permits.acquire("online", 10))
    await asyncio.wait_for(looking.wait(), 5)
    await carrier.actor.exchange(other, [], [OutcomeRow("others", "ok", 10, None, {}, None)], [])
    permits.settle_soon(await asyncio.wait_for(asking, 5), Outcome("ok"))
    found.set()
    permits.settle_soon(await asyncio.wait_for(patient, 5), Outcome("ok"))
    await one_call(permits)
    assert (await permits.stats()).granted == 4


async def test_a_permit_for_who_gave_up_meanwhile_is_given_back(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    permits = client()
    await permits.acquire("online", 10)
    first = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("called", "collect")
    monkeypatch.setattr(limiter_link, "LOST_SECONDS", 0.0)
    carrier.there.clear()
    second = asyncio.ensure_future(permits.acquire("fast", 10))
    await carrier.next("called", "exchange")
    carrier.restart(LimiterActor(ONE))
    for each in (first, second):
        with pytest.raises(RayActorError):
            await asyncio.wait_for(each, 5)
    carrier.there.set()
    await carrier.next("heard", "exchange")
    await one_call(permits)
