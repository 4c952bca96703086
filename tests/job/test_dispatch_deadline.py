"""The asking at a deadline: no call that would end after it, the most important records first."""

from __future__ import annotations

import asyncio
import time

import pytest

from job.estimates import call_seconds
from job.ration.deadline import REACHED, TimeLeft
from serve.ask.errors import QuotaExhausted
from serve.ask.limiter import Limits
from serve.ask.limiter_host import InProcessPermits
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import dispatcher
from tests.job.make import record
from tests.job.test_dispatch import TRUTH

ORDINARY = [record(f"request {n} served", level="info") for n in range(60)]
CHATS = [record(f"user: hello {n}", kind="conversation") for n in range(20)]
ERRORS = [record(f"order {n} lost", level="error") for n in range(5)]


async def test_nothing_is_asked_when_the_time_is_over() -> None:
    with SimulatedProvider(Settings(time_scale=1000)) as provider:
        async with dispatcher(provider.base_url) as asking:
            asking.time_left.until = time.time() - 1
            results = await asking.submit(ORDINARY)
        assert provider.stats()["requests"] == 0
    assert {(result.via, result.reason) for result in results} == {("unasked", REACHED)}
    assert asking.stopped == REACHED


async def test_no_call_is_begun_that_would_end_too_late() -> None:
    with SimulatedProvider(Settings(latency=((1, 0.2),))) as provider:
        async with dispatcher(provider.base_url) as asking:
            first = await asking.submit(ORDINARY[:1])
            # 0.1 s are left, where a call is seen to take 0.2 s
            asking.time_left.until = time.time() + 0.1
            second = await asking.submit(ORDINARY[1:2])
        assert provider.stats()["requests"] == 1
    assert (first[0].via, second[0].via) == ("answered", "unasked")


@pytest.mark.slow
async def test_a_call_that_takes_longer_than_expected_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its own timeout would be an hour.
    for name in ("ANSWER_SECONDS", "LONGEST_SECONDS"):
        monkeypatch.setattr(call_seconds, name, 3_600.0)
    with SimulatedProvider(Settings(fault_shares={"hang": 1.0})) as provider:
        async with asyncio.timeout(300), dispatcher(provider.base_url) as asking:
            asking.time_left = TimeLeft(until=time.time() + 2)
            asking.time_left.observe("fast", 0.01)
            (result,) = await asking.submit(ORDINARY[:1])
        assert provider.stats()["admitted"] == 1
    assert (result.via, result.reason) == ("unasked", REACHED)


async def test_records_that_were_paid_for_are_recalled_after_the_deadline() -> None:
    with SimulatedProvider(Settings(time_scale=1000)) as provider:
        async with dispatcher(provider.base_url) as asking:
            await asking.submit(ORDINARY[:3])
            asking.time_left.until = time.time() - 1
            results = await asking.submit(ORDINARY[:4])
    assert [result.via for result in results] == ["recalled"] * 3 + ["unasked"]


async def test_a_rationed_run_asks_what_matters_most_before_the_rest() -> None:
    settings = Settings(time_scale=1000, quota_after=2)
    with SimulatedProvider(settings) as provider:
        async with dispatcher(provider.base_url, rationed=True) as asking:
            asking.asker.permits = InProcessPermits(Limits(max_concurrency=1))
            results = await asking.submit([*ORDINARY, *CHATS, *ERRORS])
    assert isinstance(asking.stopped, QuotaExhausted)
    answered = {result.record.text for result in results if result.via == "answered"}
    assert answered == {each.text for each in (*CHATS, *ERRORS)}


async def test_a_run_that_is_not_rationed_asks_whatever_fills_a_pack() -> None:
    settings = Settings(time_scale=1000, quota_after=1)
    with SimulatedProvider(settings) as provider:
        async with dispatcher(provider.base_url) as asking:
            asking.asker.permits = InProcessPermits(Limits(max_concurrency=1))
            results = await asking.submit([*ORDINARY, *ERRORS])
    assert {result.via for result in results[:3]} == {"answered"}


async def test_a_slow_pack_that_does_not_fit_is_left_and_the_other_lane_goes_on() -> None:
    slow = [record(f"a long story {n}", lane="slow") for n in range(3)]
    with SimulatedProvider(Settings(time_scale=1000)) as provider:
        async with dispatcher(provider.base_url) as asking:
            asking.time_left = TimeLeft(until=time.time() + 120)
            asking.time_left.observe("slow", 600)
            results = await asking.submit([*slow, *ORDINARY])
            assert asking.stopped is None
            assert asking.progress.late == 1
    assert {(each.via, each.reason) for each in results[:3]} == {("unasked", REACHED)}
    assert {each.via for each in results[3:]} == {"answered"}


async def test_what_is_asked_again_fits_though_calls_of_the_other_lane_are_long() -> None:
    weak = {"simulated": {"phrases": ["*"]}}
    settings = Settings.model_validate({"time_scale": 1000, "truth": TRUTH, "weak_models": weak})
    with SimulatedProvider(settings) as provider:
        async with dispatcher(provider.base_url) as asking:
            asking.time_left = TimeLeft(until=time.time() + 120)
            asking.time_left.observe("slow", 600)
            (result,) = await asking.submit([record("disk is full on host 7")])
            assert asking.progress.late == 0
        assert provider.stats()["requests"] == 2
    assert result.via == "review"
