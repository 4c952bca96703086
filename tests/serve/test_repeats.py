"""Idempotency keys: asked once, answered as often as asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from typing import Any

import pytest

from serve.ask.contract import Usage
from serve.cache.store import MemoryStore
from serve.gateway.chunks import assemble, cut
from serve.gateway.contract import Answer, Answered, Call, Caller, Stream, Whole
from serve.gateway.errors import AnswerNotKept, BadRequest, ProviderFailed, ProviderTimedOut
from serve.gateway.events import payload_of
from serve.gateway.flights import Flights
from serve.gateway.repeats import DAY, GRACE, Repeats
from tests.serve.cache_calls import TARGET, Clock, a_call, an_answer


class Upstream:
    """Answers when it is told to, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()
        self.errors: list[Exception] = []
        self.cut_off = False

    async def whole(self) -> Answer:
        self.asked += 1
        await self.go.wait()
        if self.errors:
            raise self.errors.pop()
        return Whole(an_answer(f"answer {self.asked}"), Answered(TARGET, cost=Decimal(1)))

    async def stream(self) -> Answer:
        self.asked += 1
        about = Answered(TARGET, Usage(20, 3), Decimal(1))
        return Stream(self._events(an_answer(f"answer {self.asked}")), about)

    async def _events(self, body: bytes) -> AsyncIterator[bytes]:
        events = cut(body, include_usage=False)
        for event in events[: 2 if self.cut_off else None]:
            await self.go.wait()
            yield event


class World:
    """Replicas that share a store."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(10**6, self.clock)
        self.upstream = Upstream()
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    def replica(self) -> Repeats:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.clock.now += seconds
            self.on_sleep()
            await asyncio.sleep(0)

        return Repeats(self.store, Flights(), sleep)


def a_keyed_call(text: str = "text", key: str = "once", **more: Any) -> Call:
    return a_call(text, idempotency_key=key, **more)


def body_of(answer: Answer) -> bytes:
    assert isinstance(answer, Whole)
    return answer.body


async def events_of(answer: Answer) -> list[bytes]:
    assert isinstance(answer, Stream)
    return [event async for event in answer.events]


async def test_a_repeated_request_gets_the_answer_it_had_and_pays_once() -> None:
    world = World()
    first = await world.replica().once(a_keyed_call(), world.upstream.whole)
    again = await world.replica().once(a_keyed_call(), world.upstream.whole)
    assert body_of(first) == body_of(again)
    assert (first.about.cost, again.about.cost) == (Decimal(1), Decimal(0))
    assert (again.about.cache, again.about.target) == ("repeated", TARGET)
    assert world.upstream.asked == 1


async def test_after_a_day_it_is_asked_anew() -> None:
    world = World()
    await world.replica().once(a_keyed_call(), world.upstream.whole)
    world.clock.now += DAY
    await world.replica().once(a_keyed_call(), world.upstream.whole)
    assert world.upstream.asked == 2


async def test_another_body_with_the_same_key_is_refused() -> None:
    world = World()
    replica = world.replica()
    await replica.once(a_keyed_call("one"), world.upstream.whole)
    with pytest.raises(BadRequest) as raised:
        await replica.once(a_keyed_call("other"), world.upstream.whole)
    assert raised.value.code == "idempotency_key_reused"


async def test_another_body_is_refused_while_the_first_is_asked() -> None:
    world = World()
    replica = world.replica()
    world.upstream.go.clear()
    first = asyncio.create_task(replica.once(a_keyed_call("one"), world.upstream.whole))
    await asyncio.sleep(0)
    with pytest.raises(BadRequest, match="another body"):
        await replica.once(a_keyed_call("other"), world.upstream.whole)
    world.upstream.go.set()
    await first


@pytest.mark.parametrize(
    "other",
    [
        a_keyed_call("other", key="another"),
        a_keyed_call("other", caller=Caller("another", "tenant")),
        a_keyed_call("other", caller=Caller("key", "another")),
    ],
    ids=["key", "api key", "tenant"],
)
async def test_other_keys_are_apart(other: Call) -> None:
    world = World()
    replica = world.replica()
    await replica.once(a_keyed_call("one"), world.upstream.whole)
    await replica.once(other, world.upstream.whole)
    assert world.upstream.asked == 2


async def test_requests_at_once_are_asked_once_and_the_first_may_leave() -> None:
    world = World()
    replica = world.replica()
    world.upstream.go.clear()
    tasks = [
        asyncio.create_task(replica.once(a_keyed_call(), world.upstream.whole)) for _ in range(20)
    ]
    await asyncio.sleep(0)
    tasks[0].cancel()
    world.upstream.go.set()
    answers = await asyncio.gather(*tasks[1:])
    assert {body_of(answer) for answer in answers} == {an_answer("answer 1")}
    assert world.upstream.asked == 1


async def test_a_failed_request_may_be_sent_again() -> None:
    world = World()
    replica = world.replica()
    world.upstream.errors = [ProviderFailed("no")]
    with pytest.raises(ProviderFailed):
        await replica.once(a_keyed_call(), world.upstream.whole)
    assert body_of(await replica.once(a_keyed_call(), world.upstream.whole))
    assert world.upstream.asked == 2


async def test_a_replica_waits_for_the_answer_of_another() -> None:
    world = World()
    world.upstream.go.clear()
    first = asyncio.create_task(world.replica().once(a_keyed_call(), world.upstream.whole))
    await asyncio.sleep(0)
    world.on_sleep = world.upstream.go.set
    again = await world.replica().once(a_keyed_call(), world.upstream.whole)
    assert body_of(await first) == body_of(again)
    assert (again.about.cache, world.upstream.asked) == ("repeated", 1)


async def test_the_mark_of_a_replica_that_died_expires() -> None:
    world, other = World(), Upstream()
    world.upstream.go.clear()
    call = a_keyed_call(timeout=2.0)
    dead = asyncio.create_task(world.replica().once(call, world.upstream.whole))
    await asyncio.sleep(0)
    assert body_of(await world.replica().once(call, other.whole))
    assert other.asked == 1
    assert 2.0 + GRACE <= sum(world.slept) <= 2.5 + GRACE
    dead.cancel()


async def test_who_cannot_wait_for_another_replica_is_told_so() -> None:
    world = World()
    world.upstream.go.clear()
    first = asyncio.create_task(world.replica().once(a_keyed_call(), world.upstream.whole))
    await asyncio.sleep(0)
    with pytest.raises(ProviderTimedOut, match="no answer yet"):
        await world.replica().once(a_keyed_call(timeout=0.01), world.upstream.whole)
    world.upstream.go.set()
    await first


async def test_a_repeated_stream_is_the_same_answer() -> None:
    world = World()
    call = a_keyed_call(stream=True)
    first = await events_of(await world.replica().once(call, world.upstream.stream))
    again = await events_of(await world.replica().once(call, world.upstream.stream))
    assert world.upstream.asked == 1
    assert assemble([payload_of(e) for e in first]) == assemble([payload_of(e) for e in again])


async def test_a_stream_that_was_cut_off_may_be_asked_again() -> None:
    world = World()
    world.upstream.cut_off = True
    replica = world.replica()
    call = a_keyed_call(stream=True)
    await events_of(await replica.once(call, world.upstream.stream))
    world.upstream.cut_off = False
    events = await events_of(await replica.once(call, world.upstream.stream))
    assert events[-1] == b"data: [DONE]\n\n"
    assert world.upstream.asked == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_too_large_to_be_given_again_is_not_asked_again(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.store = MemoryStore(8 * 500, world.clock)
    monkeypatch.setattr("serve.gateway.repeats.BUFFER_BYTES", 500)
    call = a_keyed_call(stream=stream)
    work = world.upstream.stream if stream else world.upstream.whole
    first = await world.replica().once(call, work)
    assert not stream or (await events_of(first))[-1] == b"data: [DONE]\n\n"
    with pytest.raises(AnswerNotKept):
        await world.replica().once(call, work)
    with pytest.raises(BadRequest):
        await world.replica().once(a_keyed_call("other"), work)
    assert world.upstream.asked == 1


async def test_one_with_more_time_than_the_first_marks_the_key_anew() -> None:
    world = World()
    replica, other = world.replica(), Upstream()
    world.upstream.go.clear()
    world.upstream.errors = [ProviderTimedOut("late")]
    other.go.clear()
    first = asyncio.create_task(replica.once(a_keyed_call(timeout=30), world.upstream.whole))
    await asyncio.sleep(0)
    joined = asyncio.create_task(replica.once(a_keyed_call(timeout=60), other.whole))
    await asyncio.sleep(0)
    world.upstream.go.set()
    with pytest.raises(ProviderTimedOut):
        await first
    world.on_sleep = other.go.set
    elsewhere = await world.replica().once(a_keyed_call(), world.upstream.whole)
    assert body_of(elsewhere) == body_of(await joined)
    assert (world.upstream.asked, other.asked) == (1, 1)


async def test_a_stream_whose_client_left_is_finished_and_kept() -> None:
    world = World()
    flights = Flights()
    replica = Repeats(world.store, flights)
    call = a_keyed_call(stream=True)
    first = await replica.once(call, world.upstream.stream)
    assert isinstance(first, Stream)
    await anext(first.events)
    await first.aclose()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(flights) == 0
    again = await world.replica().once(call, world.upstream.stream)
    assert (again.about.cache, world.upstream.asked) == ("repeated", 1)
