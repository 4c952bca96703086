"""Single flight: one is asked, all get it, whoever leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.contract import Usage
from serve.gateway.contract import Answer, Answered, Stream, Target, Whole
from serve.gateway.errors import (
    Draining,
    KeySpent,
    Overloaded,
    ProviderFailed,
    ProviderTimedOut,
)
from serve.gateway.flights import Flights

TARGET = Target("main", "model")
DONE = b"data: [DONE]\n\n"


class Upstream:
    """Answers when it is told to, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0
        self.closed = 0
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.error: Exception | None = None
        self.about = Answered(TARGET, Usage(1, 2), Decimal("0.5"), attempts=1)

    async def whole(self) -> Answer:
        self.asked += 1
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return Whole(b"answer", self.about)

    async def stream(self) -> Answer:
        self.asked += 1
        self.begun.set()
        return Stream(self._events(), self.about)

    async def _events(self) -> AsyncIterator[bytes]:
        try:
            for number in range(3):
                yield b"data: %d\n\n" % number
            await self.go.wait()
            if self.error is not None:
                raise self.error
            self.about.finish_reason = "stop"
            yield DONE
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.closed += 1


async def read(answer: Answer) -> list[bytes]:
    assert isinstance(answer, Stream)
    return [event async for event in answer.events]


def joiners(
    flights: Flights, work: Callable[[], Awaitable[Answer]], count: int
) -> list[asyncio.Task[tuple[Answer, bool]]]:
    return [asyncio.create_task(flights.join("key", work, 60)) for _ in range(count)]


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


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


async def test_a_key_that_may_not_ask_spoils_nothing_for_the_others() -> None:
    flights, upstream, spent = Flights(), Upstream(), Upstream()
    spent.error = KeySpent("spent")
    first = asyncio.create_task(flights.join("key", spent.whole, 60))
    await spent.begun.wait()
    others = joiners(flights, upstream.whole, 3)
    await turns()
    upstream.go.set()
    spent.go.set()
    with pytest.raises(KeySpent):
        await first
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
    await asyncio.wait_for(kept.wait(), 5)
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


async def test_who_has_less_time_leaves_alone() -> None:
    flights, upstream = Flights(), Upstream()
    (first,) = joiners(flights, upstream.whole, 1)
    await upstream.begun.wait()
    with pytest.raises(ProviderTimedOut):
        await flights.join("key", upstream.whole, 0.001)
    upstream.go.set()
    assert not (await first)[1]
    assert upstream.asked == 1


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


async def test_who_joins_a_stream_gets_it_from_the_start() -> None:
    flights, upstream = Flights(), Upstream()
    first, joined = await flights.join("key", upstream.stream, 60)
    assert isinstance(first, Stream)
    assert [await anext(first.events) for _ in range(3)] == [b"data: %d\n\n" % n for n in range(3)]
    other, other_joined = await flights.join("key", upstream.stream, 60)
    upstream.go.set()
    assert await read(other) == [*(b"data: %d\n\n" % n for n in range(3)), DONE]
    assert await read(first) == [DONE]
    assert (joined, other_joined, upstream.asked) == (False, True, 1)
    assert first.about is upstream.about
    assert other.about.finish_reason == "stop"
    assert (other.about.cache, other.about.cost) == ("joined", Decimal(0))
    await turns()
    assert (len(flights), upstream.closed) == (0, 1)


async def test_a_stream_goes_on_when_the_first_leaves() -> None:
    flights, upstream = Flights(), Upstream()
    first, _ = await flights.join("key", upstream.stream, 60)
    other, _ = await flights.join("key", upstream.stream, 60)
    assert isinstance(first, Stream)
    await anext(first.events)
    await first.aclose()
    await first.aclose()
    upstream.go.set()
    assert (await read(other))[-1] == DONE
    assert await read(first) == []


async def test_an_error_in_the_middle_of_a_stream_is_its_last_event_for_all() -> None:
    flights, upstream = Flights(), Upstream()
    upstream.error = ProviderFailed("cut")
    answers = [(await flights.join("key", upstream.stream, 60))[0] for _ in range(2)]
    upstream.go.set()
    for answer in answers:
        *_, last = await read(answer)
        assert last == b"data: " + upstream.error.json() + b"\n\n"


async def test_a_reader_out_of_time_is_told_so() -> None:
    flights, upstream = Flights(), Upstream()
    first, _ = await flights.join("key", upstream.stream, 60)
    other, _ = await flights.join("key", upstream.stream, 0.02)
    *_, last = await read(other)
    assert b"provider_timed_out" in last
    upstream.go.set()
    assert (await read(first))[-1] == DONE


async def test_a_long_stream_is_not_held_whole() -> None:
    flights, sent = Flights(buffer_bytes=100), 0
    about = Answered(TARGET)

    async def events() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"data: 1234\n\n"
        yield DONE

    async def work() -> Answer:
        return Stream(events(), about)

    first, _ = await flights.join("key", work, 60)
    await turns(500)
    assert sent < 12  # waits for its reader
    late, late_joined = await flights.join("key", work, 60)
    assert not late_joined  # too late to get all of the first one
    assert isinstance(late, Stream)
    await late.aclose()
    assert len(await read(first)) == 101


async def test_a_long_stream_goes_on_for_those_who_stay() -> None:
    flights = Flights(buffer_bytes=20)

    async def events() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"data: 1234\n\n"

    async def work() -> Answer:
        return Stream(events(), Answered(TARGET))

    first, _ = await flights.join("key", work, 60)
    slow, _ = await flights.join("key", work, 60)
    assert isinstance(first, Stream)
    assert isinstance(slow, Stream)
    reading = asyncio.create_task(read(first))
    await turns(100)
    assert not reading.done()
    await slow.aclose()
    assert len(await reading) == 100


@given(st.integers(0, 200), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=6))
@settings(deadline=None, max_examples=40)
async def test_each_who_stays_gets_every_event_once(
    buffer_bytes: int, plans: list[tuple[int, int]]
) -> None:
    """Readers come after some turns each, read at their own pace; of three one leaves early."""
    flights = Flights(buffer_bytes=buffer_bytes)
    sent = [b"data: %d\n\n" % number for number in range(30)]
    asked = 0

    async def events() -> AsyncIterator[bytes]:
        for event in sent:
            yield event
            await asyncio.sleep(0)

    async def work() -> Answer:
        nonlocal asked
        asked += 1
        return Stream(events(), Answered(TARGET))

    async def reader(number: int, start: int, pace: int) -> list[bytes] | None:
        await turns(start)
        answer, _ = await flights.join("key", work, 60)
        assert isinstance(answer, Stream)
        got = []
        async for event in answer.events:
            got.append(event)
            if number % 3 == 2 and len(got) == 5:
                await answer.aclose()
                return None
            await turns(pace)
        return got

    results = await asyncio.gather(*(reader(n, *plan) for n, plan in enumerate(plans)))
    assert all(got == sent for got in results if got is not None)
    await turns()
    assert len(flights) == 0
    assert asked <= 1 or sum(map(len, sent)) > buffer_bytes


async def test_what_ends_with_the_gateway_says_so() -> None:
    flights, upstream = Flights(), Upstream()
    tasks = joiners(flights, upstream.whole, 3)
    await turns(1)
    await flights.aclose()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(error, Draining)


async def test_a_stream_that_ends_with_the_gateway_says_so() -> None:
    flights, upstream = Flights(), Upstream()
    answer, _ = await flights.join("key", upstream.stream, 60)
    await turns()
    await flights.aclose()
    *_, last = await read(answer)
    assert b"gateway_draining" in last


async def test_a_fault_of_the_gateway_is_raised_as_it_is() -> None:
    flights, upstream = Flights(), Upstream()
    upstream.error = RuntimeError("a fault")
    upstream.go.set()
    with pytest.raises(RuntimeError, match="a fault"):
        await flights.join("key", upstream.whole, 60)
    answer, _ = await flights.join("key", upstream.stream, 60)
    *_, last = await read(answer)
    assert b"internal_error" in last
    assert b"a fault" not in last
