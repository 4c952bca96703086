"""A request's time: who is blamed where it was not enough, when nothing is sent any more, and when
somebody else is asked."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from serve.ask.permit import Lease, Outcome, OutcomeKind, Settled
from serve.gateway.contract import Answered
from serve.gateway.errors import Overloaded, ProviderDown, ProviderRateLimited, ProviderTimedOut
from serve.gateway.trial import ENOUGH, MARGIN
from tests.serve.upstream_world import (
    KEY,
    KEY_ENV,
    PIECES,
    Fake,
    Handler,
    World,
    answering,
    error_body,
    events_of,
    hang,
    streaming,
    world,
)

HANGING = streaming(then=hang)
ONE = {"max_concurrency": 1}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


def after(seconds: float, then: Handler) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await then(request)

    return handler


def outcomes_of(made: World) -> list[OutcomeKind]:
    """How the limiter of the first provider is told that attempts ended."""
    permits, kinds = made.permits[0], []
    settle, settle_soon = permits.settle, permits.settle_soon

    async def settled(lease: Lease, outcome: Outcome) -> Settled:
        kinds.append(outcome.kind)
        return await settle(lease, outcome)

    def settled_soon(lease: Lease, outcome: Outcome) -> None:
        kinds.append(outcome.kind)
        settle_soon(lease, outcome)

    permits.settle, permits.settle_soon = settled, settled_soon  # type: ignore[method-assign]
    return kinds


async def held(made: World, seconds: float) -> None:
    """Have the only permit of the first provider taken for so long."""
    permits = made.permits[0]
    lease = await permits.acquire("online", 1)
    loop = asyncio.get_running_loop()
    loop.call_later(seconds, type(permits).settle_soon, permits, lease, Outcome("unsent"))


@pytest.mark.parametrize(("waits", "kind"), [(0.0, "timed_out"), (0.5, "rejected")])
async def test_a_provider_is_blamed_only_for_the_time_that_it_had(
    waits: float, kind: OutcomeKind
) -> None:
    async with world(Fake([after(60, answering())]), limits=ONE) as made:
        kinds = outcomes_of(made)
        await held(made, waits)
        with pytest.raises(ProviderTimedOut):
            await made.ask(timeout=1)
        assert kinds == [kind]


@pytest.mark.parametrize(("waits", "kind"), [(0.0, "timed_out"), (0.5, "rejected")])
async def test_a_stream_is_blamed_only_for_the_time_that_it_had(
    waits: float, kind: OutcomeKind
) -> None:
    async with world(Fake([streaming(*PIECES, then=hang)]), limits=ONE) as made:
        kinds = outcomes_of(made)
        await held(made, waits)
        await events_of(await made.stream(timeout=1))
        assert kinds == [kind]


async def test_nothing_is_sent_with_less_time_left_than_answers_take() -> None:
    passed = 0.0

    async def slowly(request: web.Request) -> web.StreamResponse:
        nonlocal passed
        passed += 100
        return await answering()(request)

    fake = Fake([*[slowly] * ENOUGH, after(600, answering())])
    async with world(fake, clock=lambda: time.monotonic() + passed, limits=ONE) as made:
        for _ in range(ENOUGH):
            await made.ask(timeout=600)
        lease = await made.permits[0].acquire("online", 1)
        async with asyncio.timeout(60):
            with pytest.raises(ProviderRateLimited) as caught:
                await made.ask(timeout=600, spent=600 - MARGIN * 100 - 0.5)
        assert caught.value.headers() == {"retry-after": "1"}
        made.permits[0].settle_soon(lease, Outcome("unsent"))
        # One that has all its time is sent, though others took longer.
        with pytest.raises(ProviderTimedOut):
            await made.ask(timeout=1)
    assert len(fake.seen) == ENOUGH + 1


async def test_time_that_went_before_is_not_called_the_providers_limit() -> None:
    fake = Fake([after(0.1, answering())])
    async with world(fake) as made:
        await asyncio.gather(*(made.ask() for _ in range(ENOUGH)))
        with pytest.raises(Overloaded):
            await made.ask(timeout=1, spent=0.95)
    assert len(fake.seen) == ENOUGH


async def test_the_next_is_asked_where_one_lets_nobody_through_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serve.gateway.gate.PERMIT_SECONDS", 0.1)
    first, second = Fake([answering()]), Fake([answering()])
    async with world(first, second, limits=ONE) as made:
        lease = await made.permits[0].acquire("online", 1)
        assert str((await made.ask()).about.target) == "p1/m"
        await made.permits[0].settle(lease, Outcome("unsent"))
        assert str((await made.ask()).about.target) == "p0/m"


@pytest.mark.parametrize("headers", [{}, {"retry-after": "200"}])
async def test_the_next_is_asked_where_one_says_too_many_again_and_again(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    monkeypatch.setattr("serve.gateway.gate.PERMIT_SECONDS", 0.1)
    busy, good = Fake([answering(429, error_body("slow"), headers)]), Fake([answering()])
    async with asyncio.timeout(60), world(busy, good) as made:
        assert str((await made.ask(timeout=600)).about.target) == "p1/m"
    assert 1 <= len(busy.seen) <= 4


async def test_a_429_is_tried_as_often_as_a_failure_where_somebody_else_is_there() -> None:
    async def at_once(*_: Any) -> Lease:
        return Lease("any", "online", 1, 0.0, 0.0)

    busy, good = Fake([answering(429, error_body("slow"))]), Fake([answering()])
    async with world(busy, good) as made:
        made.permits[0].acquire = at_once  # type: ignore[method-assign,assignment]
        assert str((await made.ask()).about.target) == "p1/m"
    assert len(busy.seen) == 4


async def lost(*_: Any) -> Any:
    raise RuntimeError("the actor died")


async def test_a_limiter_that_is_gone_makes_the_next_be_asked() -> None:
    async with world(Fake([answering()]), Fake([answering()])) as made:
        made.permits[0].acquire = lost  # type: ignore[method-assign,assignment]
        assert str((await made.ask()).about.target) == "p1/m"


@pytest.mark.parametrize("missing", ["acquire", "retry_token"])
async def test_a_limiter_that_is_gone_is_told_as_what_it_is(missing: str) -> None:
    async with world(Fake([answering(500, b"oops")])) as made:
        setattr(made.permits[0], missing, lost)
        with pytest.raises(ProviderDown, match="limiter of p0/m"):
            await made.ask()


async def test_it_is_known_whether_anything_was_sent() -> None:
    fake = Fake([HANGING])
    async with world(fake, limits=ONE) as made:
        for written in (False, True):
            about = Answered()
            lease = await made.permits[0].acquire("online", 1)
            asking = asyncio.ensure_future(made.ask(about=about))
            if written:
                made.permits[0].settle_soon(lease, Outcome("unsent"))
                await fake.came.wait()
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            made.permits[0].settle_soon(lease, Outcome("unsent"))
            assert about.written == written
