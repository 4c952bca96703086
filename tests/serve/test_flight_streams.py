"""Single flight of streams: each reader gets every event once, whoever leaves or is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.contract import Answer, Answered, Stream
from serve.gateway.errors import ProviderFailed
from serve.gateway.flights import Flights
from tests.serve.flight_world import DONE, TARGET, Upstream, read, turns


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
