"""The foretold time against the limiter itself, asked on an event loop in simulated time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.commands.preview_asking import CLASSES, Asking, Call, Listed
from serve.ask.contract import Class
from serve.ask.limiter import Limits, Outcome
from serve.ask.limiter_host import InProcessPermits
from tests.serve.limiter_world import Provider, World
from tests.serve.virtual_loop import run_virtually


def call(cls: Class, tokens: int, seconds: float) -> Call:
    return Call(cls, tokens, tokens * 0.7, tokens * 0.2, seconds)


CALLS = st.lists(
    st.builds(
        call,
        st.sampled_from(CLASSES),
        st.integers(100, 9000),
        st.integers(1, 200).map(lambda n: n / 10),
    ),
    max_size=60,
)
LIMITS = st.builds(
    Limits,
    rpm=st.sampled_from([None, 20, 60, 600]),
    tpm=st.sampled_from([None, 20_000, 200_000]),
    burst=st.sampled_from([None, 1, 10]),
    max_concurrency=st.integers(1, 30),
    share=st.sampled_from([1.0, 0.5]),
)


async def asked(calls: list[Call], limits: Limits) -> float:
    """Seconds until the last answer, of the seekers of a dispatcher: one for each class."""
    loop = asyncio.get_running_loop()
    permits = InProcessPermits(limits, clock=loop.time)
    last = 0.0

    async def send(one: Call, permit: asyncio.Future[None]) -> None:
        nonlocal last
        lease = await permits.acquire(one.cls, one.reserved)
        permit.set_result(None)
        await asyncio.sleep(one.seconds)
        last = max(last, loop.time())
        await permits.settle(lease, Outcome("ok", tokens=round(one.tokens_in + one.tokens_out)))

    async def seek(cls: Class, group: asyncio.TaskGroup) -> None:
        for one in calls:
            if one.cls == cls:
                permit = loop.create_future()
                group.create_task(send(one, permit))
                await permit

    async with asyncio.TaskGroup() as group:
        for cls in CLASSES:
            group.create_task(seek(cls, group))
    return last


@settings(max_examples=30)
@given(CALLS, LIMITS)
def test_the_time_is_what_the_limiter_takes(calls: list[Call], limits: Limits) -> None:
    asking = Asking(limits)
    sent = asking.run(Listed(calls))
    assert len(sent) == len(calls)
    assert asking.now == pytest.approx(run_virtually(asked(calls, limits)), rel=0.02, abs=0.2)


@pytest.mark.parametrize("limits", [Limits(rpm=60, burst=60), Limits(tpm=120_000)])
def test_an_honest_provider_takes_as_long(limits: Limits) -> None:
    """Beyond the limiter's own clock: a provider with buckets of its own, and a wire."""
    provider = Provider(rpm=limits.rpm, burst=limits.burst, tpm=limits.tpm, latency=(3.0, 3.0))
    world = World(limits, provider, seed=3, waiting={"fast": 1}, size=lambda rng: 5000)
    world.run(120)
    ended = [at for at, _, outcome in world.ended if outcome.kind == "ok"]
    asking = Asking(limits)
    asking.run(Listed([Call("fast", 5000, 4000, 1000, 3.1)] * len(ended)))
    assert asking.now == pytest.approx(ended[-1], rel=0.05)


def test_nothing_to_ask_takes_no_time() -> None:
    asking = Asking(Limits(rpm=60))
    assert asking.run(Listed([])) == []
    assert asking.now == 0.0


def test_after_a_rest_the_limit_lets_a_burst_through_again() -> None:
    asking = Asking(Limits(rpm=60, burst=10, max_concurrency=50))
    asking.run(Listed([call("fast", 100, 1.0)] * 30))
    busy = asking.now
    asking.rest(60.0)
    asking.run(Listed([call("fast", 100, 1.0)] * 5))
    assert asking.now == pytest.approx(busy + 61.0, abs=0.1)
