"""Who is let in: bounded, in order, and nothing is left behind by those who give up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.admission import BODIES, MOST_WAIT, Admission, Pace, Turn
from serve.gateway.body import PART_BYTES
from serve.gateway.errors import Draining, Overloaded
from serve.gateway.settings import AdmissionSettings
from tests.serve.gateway_world import is_empty


def admission(in_flight: int = 2, waiting: int = 3, body_bytes: int = 100) -> Admission:
    return Admission(AdmissionSettings(in_flight=in_flight, waiting=waiting, body_bytes=body_bytes))


async def parts_of(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def turns_of(door: Admission, count: int) -> list[Turn]:
    turns = [door.turn() for _ in range(count)]
    for turn in turns:
        assert await turn.begin() == 0.0
    return turns


async def test_turns_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    door = admission(in_flight=1, waiting=10)
    (first,) = await turns_of(door, 1)
    order: list[int] = []

    async def one(n: int) -> None:
        async with door.turn():
            order.append(n)

    waiting = [asyncio.create_task(one(n)) for n in range(5)]
    await asyncio.sleep(0)
    assert (door.in_flight, door.waiting, order) == (1, 5, [])
    first.end()
    first.end()
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2, 3, 4]
    assert (door.in_flight, door.waiting) == (0, 0)


async def test_too_many_that_wait_are_turned_away_with_the_time_to_wait() -> None:
    door = admission(in_flight=1, waiting=1)
    await turns_of(door, 1)
    waiting = asyncio.create_task(door.turn().begin())
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await door.turn().begin()
    assert refused.value.headers() == {"retry-after": "1"}
    waiting.cancel()


async def test_one_who_is_cancelled_in_the_moment_of_his_turn_hands_it_on() -> None:
    door = admission(in_flight=1)
    (first,) = await turns_of(door, 1)
    given_up = asyncio.create_task(door.turn().begin())
    next_one = asyncio.create_task(door.turn().begin())
    await asyncio.sleep(0)
    first.end()
    given_up.cancel()
    async with asyncio.timeout(60):
        await next_one
    assert (door.in_flight, door.waiting) == (1, 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "cancel", "both"]), st.integers(0, 20))))
def test_whatever_begins_ends_and_is_cancelled_nothing_is_left(
    steps: list[tuple[str, int]],
) -> None:
    async def run() -> None:
        door = admission(in_flight=2, waiting=4)
        tasks: list[tuple[Turn, asyncio.Task[float]]] = []
        for what, which in steps:
            if what == "begin":
                turn = door.turn()
                tasks.append((turn, asyncio.create_task(turn.begin())))
            elif tasks:
                turn, task = tasks[which % len(tasks)]
                if what in ("end", "both"):
                    turn.end()
                if what in ("cancel", "both"):
                    task.cancel()
            if which % 2:
                await asyncio.sleep(0)
            assert 0 <= door.in_flight <= 2
            assert 0 <= door.waiting <= 4
        async with asyncio.timeout(60):
            for turn, task in tasks:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                turn.end()
        assert (door.in_flight, door.waiting) == (0, 0)

    asyncio.run(run())


async def test_visits_are_bounded_and_end_once() -> None:
    door = admission(in_flight=1, waiting=1)
    first, second = door.visit(), door.visit()
    for visit in (first, second):
        await visit.read({}, parts_of(b"x"))
    with pytest.raises(Overloaded):
        door.visit()
    first.end()
    first.end()
    with door.visit() as third:
        await third.read({}, parts_of(b"x"))
        with pytest.raises(Overloaded):
            door.visit()
    second.end()


async def test_draining_lets_nobody_in_and_serves_those_who_are_here() -> None:
    door = admission(in_flight=1)
    (turn,) = await turns_of(door, 1)
    waiting = asyncio.create_task(door.turn().begin())
    await asyncio.sleep(0)
    door.drain()
    with pytest.raises(Draining) as refused:
        door.visit()
    assert refused.value.headers() == {"retry-after": "1"}
    turn.end()
    await waiting  # who waited before has its turn


async def test_all_bodies_together_are_bounded_and_given_back() -> None:
    door = admission(in_flight=100, body_bytes=10)
    visits = [door.visit() for _ in range(BODIES + 2)]
    for visit in visits[:-2]:
        await visit.read({}, parts_of(b"x" * 10))
    with pytest.raises(Overloaded):
        await visits[-2].read({}, parts_of(b"x"))
    visits[0].end()
    assert await visits[-1].read({}, parts_of(b"x" * 10)) == b"x" * 10


async def test_bodies_that_come_slowly_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    limits = AdmissionSettings(in_flight=1, waiting=1, body_bytes=10 * PART_BYTES)
    door = Admission(limits, clock=lambda: now[0])
    more = asyncio.Event()

    async def slow(size: int) -> AsyncIterator[bytes]:
        yield b"x" * size
        await more.wait()
        yield b"y"

    async def send(size: int) -> int:
        with door.visit() as visit:
            return len(await visit.read({}, slow(size)))

    sent = [asyncio.create_task(send(size)) for size in (PART_BYTES, 1)]
    await asyncio.sleep(0)
    now[0] = 1.0
    with door.visit() as another:
        assert await another.read({}, parts_of(b"z")) == b"z"
        with pytest.raises(Overloaded):
            await sent[1]
        more.set()
        assert await sent[0] == PART_BYTES + 1, "it came faster"
    assert is_empty(door)


async def test_who_sent_his_body_while_the_last_place_went_is_turned_away() -> None:
    door = admission(in_flight=1, waiting=1)
    with door.visit() as late, door.visit() as first:
        await first.read({}, parts_of(b"x"))
        with door.visit() as second:
            await second.read({}, parts_of(b"x"))
            with pytest.raises(Overloaded):
                await late.read({}, parts_of(b"x"))
    assert is_empty(door)


def test_the_wait_that_is_told_is_that_of_the_recent_pace() -> None:
    pace = Pace()
    assert pace.seconds_for(10, 0.0) == 1.0
    for at in range(11):
        pace.ended(at * 0.5)
    assert pace.seconds_for(10, 5.0) == 5.0
    assert pace.seconds_for(1, 5.0) == 1.0
    assert pace.seconds_for(10, 10.0) == 10.0, "nothing has ended for a while"
    assert pace.seconds_for(10_000, 5.0) == MOST_WAIT
