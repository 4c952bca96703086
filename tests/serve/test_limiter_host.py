"""The limiter on an event loop: who waits is woken, who goes away leaves nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from serve.ask.errors import BreakerOpen
from serve.ask.limiter import Lease, Limits, Outcome
from serve.ask.limiter_host import InProcessPermits, LimiterHost, TicketLost
from serve.ask.permit import CLASSES
from tests.serve.virtual_loop import run_virtually


def permits_for(limits: Limits) -> InProcessPermits:
    return InProcessPermits(limits, clock=asyncio.get_running_loop().time)


def host_for(limits: Limits) -> LimiterHost:
    return LimiterHost(limits, clock=asyncio.get_running_loop().time)


def test_who_waits_for_the_rate_is_woken_when_it_is_time() -> None:
    async def main() -> list[float]:
        permits = permits_for(Limits(rpm=60, burst=1))
        return [(await permits.acquire("fast", 100)).granted_at for _ in range(3)]

    assert run_virtually(main()) == pytest.approx([0.0, 1 / 0.98, 2 / 0.98], abs=0.01)


def test_who_waits_for_a_permit_is_woken_when_one_comes_back() -> None:
    async def main() -> None:
        permits = permits_for(Limits(max_concurrency=1))
        first = await permits.acquire("fast", 100)
        second = asyncio.ensure_future(permits.acquire("fast", 100))
        await asyncio.sleep(1)
        assert not second.done()
        await permits.settle(first, Outcome("ok"))
        assert (await second).granted_at == 1.0

    run_virtually(main())


def test_cancelled_waiter_leaves_its_place() -> None:
    async def main() -> None:
        permits = permits_for(Limits(max_concurrency=1))
        first = await permits.acquire("fast", 100)
        gone = asyncio.ensure_future(permits.acquire("fast", 100))
        await asyncio.sleep(1)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert (await permits.stats()).waiting["fast"] == 0
        await permits.settle(first, Outcome("ok"))
        assert (await permits.stats()).in_use == 0

    run_virtually(main())


def test_waiter_cancelled_in_the_moment_of_its_grant_gives_the_permit_back() -> None:
    async def main() -> None:
        permits = permits_for(Limits(max_concurrency=1))
        first = await permits.acquire("fast", 100)
        unlucky = asyncio.ensure_future(permits.acquire("fast", 100))
        next_one = asyncio.ensure_future(permits.acquire("fast", 100))
        await asyncio.sleep(0)
        await permits.settle(first, Outcome("ok"))  # grants to the unlucky one, still asleep
        unlucky.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unlucky
        assert isinstance(await next_one, Lease)
        assert (await permits.stats()).in_use == 1

    run_virtually(main())


def test_lease_that_is_never_settled_expires_by_itself() -> None:
    async def main() -> float:
        permits = permits_for(Limits(max_concurrency=1))
        await permits.acquire("fast", 100, call_seconds=60.0)
        return (await permits.acquire("fast", 100)).granted_at

    assert run_virtually(main()) == pytest.approx(90.0)


def test_online_gets_an_error_while_the_breaker_is_open_and_batch_waits_for_its_end() -> None:
    async def main() -> None:
        permits = permits_for(Limits(rpm=60, burst=6))
        leases = [await permits.acquire("fast", 1) for _ in range(5)]
        waiting = asyncio.ensure_future(permits.acquire("online", 1))
        await asyncio.sleep(0)
        for lease in leases:
            settled = await permits.settle(lease, Outcome("unavailable"))
        assert settled.breaker_open
        with pytest.raises(BreakerOpen) as error:
            await waiting
        assert error.value.retry_after == 5.0
        with pytest.raises(BreakerOpen):
            await permits.acquire("online", 1)
        assert (await permits.acquire("fast", 1)).granted_at == 5.0

    run_virtually(main())


def test_retry_waits_for_its_token_and_never_fails() -> None:
    async def main() -> list[float]:
        permits = permits_for(Limits())
        times = []
        for _ in range(13):
            await permits.retry_token()
            times.append(asyncio.get_running_loop().time())
        assert (await permits.stats()).retries == 13
        return times

    assert run_virtually(main()) == pytest.approx([0.0] * 10 + [10.0, 20.0, 30.0], abs=0.01)


def test_ticket_made_to_expire_is_lost_to_whoever_waits_on_it() -> None:
    async def main() -> None:
        host = host_for(Limits(max_concurrency=1))
        await host.acquire("held", "fast", 1)
        waiting = asyncio.ensure_future(host.acquire("waits", "fast", 1))
        await asyncio.sleep(0)
        host.expire(["waits"])
        with pytest.raises(TicketLost):
            await waiting
        host.expire(["held"])
        assert host.stats().in_use == 0
        assert host.stats().expired == 1

    run_virtually(main())


def test_permit_of_a_dead_holder_is_not_granted_to_its_other_tickets() -> None:
    async def main() -> None:
        host = host_for(Limits(rpm=60, burst=2, max_concurrency=1))
        await host.acquire("held", "fast", 1)
        dead = asyncio.ensure_future(host.acquire("waits", "fast", 1))
        alive = asyncio.ensure_future(host.acquire("of another", "fast", 1))
        await asyncio.sleep(0)
        host.expire(["held", "waits"])
        assert (await alive).id == "of another"
        assert host.stats().granted == 2
        with pytest.raises(TicketLost):
            await dead

    run_virtually(main())


def test_looser_limits_let_waiters_go_at_once() -> None:
    async def main() -> None:
        host = host_for(Limits(rpm=1, burst=1))
        await host.acquire("first", "fast", 1)
        waiting = asyncio.ensure_future(host.acquire("second", "fast", 1))
        await asyncio.sleep(1)
        host.set_limits(Limits(rpm=6000))
        await asyncio.wait_for(waiting, 1)

    run_virtually(main())


@pytest.mark.parametrize("seed", range(10))
def test_hundred_callers_that_come_fail_and_go_leave_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)

    async def caller(permits: InProcessPermits) -> None:
        await asyncio.sleep(rng.uniform(0, 60))
        lease = await permits.acquire(rng.choice(CLASSES), rng.randint(1, 5000))
        outcome = Outcome("unsent")
        try:
            await asyncio.sleep(rng.uniform(0.5, 5))
            outcome = Outcome(rng.choice(["ok", "ok", "ok", "unavailable", "rate_limited"]))
        finally:
            await permits.settle(lease, outcome)

    async def main() -> None:
        permits = permits_for(Limits(rpm=600, tpm=500_000, max_concurrency=10))
        callers = [asyncio.ensure_future(caller(permits)) for _ in range(100)]
        for each in rng.sample(callers, 30):
            asyncio.get_running_loop().call_later(rng.uniform(0, 80), each.cancel)
        results = await asyncio.gather(*callers, return_exceptions=True)
        assert all(
            r is None or isinstance(r, asyncio.CancelledError | BreakerOpen) for r in results
        )
        stats = await permits.stats()
        assert stats.in_use == 0
        assert not any(stats.waiting.values())
        assert 1 <= stats.peak <= 10

    run_virtually(main())
