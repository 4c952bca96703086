"""One limiter for several processes: shared, and survived by whoever survives."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
import ray

from serve.ask.errors import BreakerOpen
from serve.ask.holders import SILENT_SECONDS
from serve.ask.limiter import Lease, LimiterStats, Limits, Outcome
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_server import LimiterActor

pytestmark = pytest.mark.ray

URL = "https://llm.example/v1"
KEY_ENV = "TEST_LIMITER_KEY"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def key(cluster: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A key of its own for every test, hence an actor of its own."""
    value = f"key of {request.node.name}"
    monkeypatch.setenv(KEY_ENV, value)
    return value


class Client:
    """A process that asks the same provider."""

    def __init__(self, key: str, limits: Limits) -> None:
        os.environ[KEY_ENV] = key
        self.permits = RayPermits(URL, KEY_ENV, limits)

    async def acquire(self) -> Lease:
        return await self.permits.acquire("fast", 100)

    async def settle(self, lease: Lease) -> None:
        await self.permits.settle(lease, Outcome("ok", tokens=100))

    async def work(self, calls: int) -> list[float]:
        """Make `calls` calls, ten at a time; when each was granted by the limiter's clock."""

        async def one(at_once: asyncio.Semaphore) -> float:
            async with at_once:
                lease = await self.permits.acquire("fast", 100)
                await asyncio.sleep(0.01)
                await self.permits.settle(lease, Outcome("ok", tokens=100))
                return lease.granted_at

        at_once = asyncio.Semaphore(10)
        return await asyncio.gather(*(one(at_once) for _ in range(calls)))

    async def pid(self) -> int:
        return os.getpid()


def start_client(key: str, limits: Limits) -> Any:
    return ray.remote(Client).options(num_cpus=0, max_concurrency=4).remote(key, limits)


def actor_of(permits: RayPermits) -> Any:
    return permits._link.actor


async def eventually(
    permits: RayPermits, holds: Callable[[LimiterStats], bool], seconds: float = 60.0
) -> None:
    """Wait until something is true of the limiter."""
    deadline = time.monotonic() + seconds
    while not holds(stats := await permits.stats()):
        assert time.monotonic() < deadline, stats
        await asyncio.sleep(0.05)


def test_two_processes_share_one_limit(key: str) -> None:
    limits = Limits(rpm=600, burst=20, max_concurrency=8)
    clients = [start_client(key, limits) for _ in range(2)]
    granted = sorted(chain(*ray.get([client.work.remote(30) for client in clients])))
    assert granted[-1] - granted[0] >= (60 - 20) / 10
    stats = asyncio.run(RayPermits(URL, KEY_ENV, limits).stats())
    assert stats.granted == 60
    assert stats.peak <= 8
    assert stats.in_use == 0


def test_another_key_is_another_limiter(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = RayPermits(URL, KEY_ENV, Limits())
    monkeypatch.setenv(KEY_ENV, f"not {key}")
    theirs = RayPermits(URL, KEY_ENV, Limits())

    async def main() -> None:
        await ours.acquire("fast", 1)
        assert (await ours.stats()).in_use == 1
        assert (await theirs.stats()).in_use == 0

    asyncio.run(main())


def test_key_is_nowhere_in_what_the_cluster_shows(key: str) -> None:
    RayPermits(URL, KEY_ENV, Limits())
    names = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True)]
    assert any(name.startswith("limiter-v3-") for name in names)
    assert not any(key in name or URL in name for name in names)


def test_strictest_limits_of_those_who_joined_hold(key: str) -> None:
    async def main() -> None:
        loose = RayPermits(URL, KEY_ENV, Limits(rpm=600, max_concurrency=50))
        await loose.settle(await loose.acquire("fast", 1), Outcome("ok"))
        strict = RayPermits(URL, KEY_ENV, Limits(rpm=60, max_concurrency=3))
        await strict.settle(await strict.acquire("fast", 1), Outcome("ok"))
        stats = await loose.stats()
        assert stats.concurrency <= 3
        assert stats.rpm == pytest.approx(58.8)

    asyncio.run(main())


def test_lease_and_place_of_a_killed_process_come_free(key: str) -> None:
    limits = Limits(max_concurrency=1)
    doomed = start_client(key, limits)
    ray.get(doomed.acquire.remote())
    waiting = doomed.acquire.remote()
    pid = ray.get(doomed.pid.remote())

    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, limits)
        stats = await permits.stats()
        assert (stats.in_use, stats.waiting["fast"]) == (1, 1)
        os.kill(pid, signal.SIGKILL)
        lease = await asyncio.wait_for(permits.acquire("fast", 1), SILENT_SECONDS + 60)
        stats = await permits.stats()
        assert (stats.in_use, stats.waiting["fast"], stats.expired) == (1, 0, 1)
        await permits.settle(lease, Outcome("ok"))

    asyncio.run(main())
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(waiting)


@pytest.mark.parametrize("for_good", [False, True], ids=["restarts", "killed for good"])
def test_callers_survive_the_loss_of_the_actor(key: str, for_good: bool) -> None:
    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, Limits(rpm=600, burst=10, max_concurrency=5))
        held = [await permits.acquire("fast", 1) for _ in range(5)]
        waiting = [asyncio.ensure_future(permits.acquire("fast", 1)) for _ in range(3)]
        await eventually(permits, lambda stats: stats.waiting["fast"] == 3)
        ray.kill(actor_of(permits), no_restart=for_good)
        leases = await asyncio.wait_for(asyncio.gather(*waiting), 120)
        for lease in held:
            await permits.settle(lease, Outcome("ok"))
        stats = await permits.stats()
        assert stats.in_use == 3, "leases of the lost actor are not settled twice"
        assert stats.granted == 3
        for lease in leases:
            await permits.settle(lease, Outcome("ok"))
        await permits.retry_token()

    asyncio.run(main())


def test_new_actor_counts_what_was_sent_under_the_lost_one(key: str) -> None:
    async def main() -> float:
        permits = RayPermits(URL, KEY_ENV, Limits(rpm=60, burst=5))
        for _ in range(4):
            await permits.settle(await permits.acquire("fast", 1), Outcome("ok"))
        ray.kill(actor_of(permits), no_restart=True)
        started = time.monotonic()
        for _ in range(3):
            await permits.settle(await permits.acquire("fast", 1), Outcome("ok"))
        return time.monotonic() - started

    assert asyncio.run(main()) > 2


def test_cancelled_caller_leaves_no_ticket_and_no_lease(key: str) -> None:
    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, Limits(max_concurrency=1))
        lease = await permits.acquire("fast", 1)
        waiting = asyncio.ensure_future(permits.acquire("fast", 1))
        await eventually(permits, lambda stats: stats.waiting["fast"] == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await permits.settle(lease, Outcome("ok"))
        hasty = asyncio.ensure_future(permits.acquire("fast", 1))
        await asyncio.sleep(0)
        hasty.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hasty
        await eventually(permits, lambda stats: not stats.in_use and not stats.waiting["fast"])

    asyncio.run(main())


def test_online_learns_across_processes_that_the_breaker_is_open(key: str) -> None:
    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, Limits())
        for _ in range(5):
            lease = await permits.acquire("fast", 1)
            settled = await permits.settle(lease, Outcome("unavailable", status=503))
        assert settled.breaker_open
        with pytest.raises(BreakerOpen) as error:
            await permits.acquire("online", 1)
        assert 0 < error.value.retry_after <= 5
        assert error.value.status == 503

    asyncio.run(main())


def test_settle_does_not_queue_behind_a_thousand_who_wait(key: str) -> None:
    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, Limits(max_concurrency=1))
        lease = await permits.acquire("fast", 1)
        waiting = [asyncio.ensure_future(permits.acquire("fast", 1)) for _ in range(1500)]
        await eventually(permits, lambda stats: stats.waiting["fast"] == 1500)
        await asyncio.wait_for(permits.settle(lease, Outcome("ok")), 60)
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert len(done) == 1
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.usefixtures("cluster")
def test_unused_actor_ends_itself() -> None:
    actor = ray.remote(LimiterActor).options(num_cpus=0, max_restarts=-1).remote(Limits(), 1.0)
    deadline = time.monotonic() + 120
    lost = None
    while lost is None and time.monotonic() < deadline:
        try:
            ray.get(actor.address.remote())
            time.sleep(0.2)
        except ray.exceptions.RayActorError as error:
            lost = error
    assert lost is not None
