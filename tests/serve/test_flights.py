"""Single flight: one is asked, all get it, whoever leaves."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from serve.gateway.contract import Answer, Whole
from serve.gateway.errors import (
    Draining,
    KeySpent,
    KeyUncounted,
    Overloaded,
    ProviderFailed,
    ProviderTimedOut,
)
from serve.gateway.flights import Flights
from tests.serve.flight_world import Upstream, joiners, turns
from tests.serve.virtual_loop import virtually


async def test_of_200_one_is_asked_also_when_the_first_leaves() -> None:
    flights, upstream = Flights(), Upstream()
    first, *others = joiners(flights, upstream.whole, 200)
    await upstream.begun.wait()
    first.cancel()
    await turns()
    upstream.go.set()
    answers = await asyncio.gather(*others)
    assert upstream.asked == 1
    assert {answer.body for answer, _ in answers if isinstance(answer, Whole)} == {b"answer"}
    assert all(joined for _, joined in answers)
    assert {(a.about.cache, a.about.cost, a.about.attempts) for a, _ in answers} == {
        ("joined", Decimal(0), 0)
    }
    assert first.cancelled()
    await turns()
    assert len(flights) == 0


async def test_the_first_is_told_what_it_costs() -> None:
    flights, upstream = Flights(), Upstream()
    upstream.go.set()
    answer, joined = await flights.join("key", upstream.whole, 60)
    assert (answer.about, joined) == (upstream.about, False)


async def test_other_keys_and_later_requests_are_asked_anew() -> None:
    flights, upstream = Flights(), Upstream()
    upstream.go.set()
    await flights.join("key", upstream.whole, 60)
    await flights.join("key", upstream.whole, 60)
    await asyncio.gather(*(flights.join(key, upstream.whole, 60) for key in ("a", "b")))
    assert upstream.asked == 4


async def test_an_error_goes_to_all() -> None:
    flights, upstream = Flights(), Upstream()
    upstream.error = ProviderFailed("no")
    tasks = joiners(flights, upstream.whole, 5)
    await upstream.begun.wait()
    await turns()
    upstream.go.set()
    assert await asyncio.gather(*tasks, return_exceptions=True) == [upstream.error] * 5
    assert upstream.asked == 1


@pytest.mark.parametrize("error", [KeySpent("spent"), KeyUncounted("nobody can count")])
async def test_a_key_that_may_not_ask_spoils_nothing_for_the_others(error: Exception) -> None:
    flights, upstream, spent = Flights(), Upstream(), Upstream()
    spent.error = error
    begun = [asyncio.create_task(flights.join("key", spent.whole, 60, "poor")) for _ in range(3)]
    await spent.begun.wait()
    others = joiners(flights, upstream.whole, 3)
    await turns()
    upstream.go.set()
    spent.go.set()
    assert await asyncio.gather(*begun, return_exceptions=True) == [error] * 3
    assert [joined for _, joined in await asyncio.gather(*others)].count(False) == 1
    assert (spent.asked, upstream.asked) == (1, 1)


async def test_the_answer_is_finished_for_nobody() -> None:
    flights, upstream = Flights(), Upstream()
    kept = asyncio.Event()

    async def work() -> Answer:
        answer = await upstream.whole()
        kept.set()
        return answer

    (first,) = joiners(flights, work, 1)
    await upstream.begun.wait()
    first.cancel()
    await turns()
    upstream.go.set()
    await asyncio.wait_for(kept.wait(), 60)
    assert upstream.cancelled == 0


async def test_only_so_many_are_finished_for_nobody() -> None:
    flights, upstream = Flights(most_orphans=2), Upstream()
    tasks = [asyncio.create_task(flights.join(n, upstream.whole, 60)) for n in range(5)]
    await turns()
    for task in tasks:
        task.cancel()
    await turns()
    assert (len(flights), upstream.cancelled) == (2, 3)


async def test_who_comes_while_one_of_them_ends_is_asked_anew() -> None:
    flights, upstream, ended = Flights(most_orphans=0), Upstream(), asyncio.Event()

    async def slow_to_end() -> Answer:
        try:
            return await upstream.whole()
        finally:
            await ended.wait()

    (first,) = joiners(flights, slow_to_end, 1)
    await upstream.begun.wait()
    first.cancel()
    await turns()
    upstream.go.set()
    (again,) = joiners(flights, upstream.whole, 1)
    assert not (await again)[1]
    assert (upstream.asked, upstream.cancelled) == (2, 1)
    ended.set()
    await turns()
    assert len(flights) == 0


@pytest.mark.parametrize("error", [ProviderTimedOut("late"), Overloaded("no turn in time")])
async def test_a_short_timeout_of_the_first_is_its_own(error: Exception) -> None:
    flights, hurried, upstream = Flights(), Upstream(), Upstream()
    hurried.error = error
    first = asyncio.create_task(flights.join("key", hurried.whole, 30))
    await hurried.begun.wait()
    equal = asyncio.create_task(flights.join("key", hurried.whole, 30))
    others = joiners(flights, upstream.whole, 3)
    await turns()
    upstream.go.set()
    hurried.go.set()
    assert list(await asyncio.gather(first, equal, return_exceptions=True)) == [error, error]
    assert [joined for _, joined in await asyncio.gather(*others)].count(False) == 1
    assert (hurried.asked, upstream.asked) == (1, 1)


@virtually
async def test_who_has_less_time_leaves_alone() -> None:
    flights, upstream = Flights(), Upstream()
    (first,) = joiners(flights, upstream.whole, 1)
    await upstream.begun.wait()
    with pytest.raises(ProviderTimedOut):
        await flights.join("key", upstream.whole, 0.001)
    upstream.go.set()
    assert not (await first)[1]
    assert upstream.asked == 1


@virtually
async def test_the_flight_has_a_deadline_of_its_own() -> None:
    flights, upstream = Flights(grace=0.05), Upstream()
    first = asyncio.create_task(flights.join("key", upstream.whole, 0.01))
    await upstream.begun.wait()
    other = asyncio.create_task(flights.join("key", upstream.whole, 0.02))
    await turns()
    first.cancel()
    with pytest.raises(ProviderTimedOut):
        await other
    assert upstream.cancelled == 1


@virtually
async def test_work_out_of_time_may_say_why() -> None:
    flights, upstream = Flights(), Upstream()

    async def work() -> Answer:
        try:
            async with asyncio.timeout(0.01):
                return await upstream.whole()
        except TimeoutError:
            await asyncio.sleep(0.01)
            raise ProviderFailed("a reason") from None

    tasks = [asyncio.create_task(flights.join("key", work, 0.01)) for _ in range(3)]
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, ProviderFailed)


async def test_what_ends_with_the_gateway_says_so() -> None:
    flights, upstream = Flights(), Upstream()
    tasks = joiners(flights, upstream.whole, 3)
    await turns(1)
    await flights.aclose()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(error, Draining)
