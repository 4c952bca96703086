"""A stream that is kept while it passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from serve.ask.contract import Usage
from serve.gateway.chunks import cut
from serve.gateway.contract import Answered, Stream
from serve.gateway.tee import Tee
from tests.serve.cache_calls import an_answer

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 3,
    "total_tokens": 23,
    "prompt_tokens_details": {"cached_tokens": 5},
}
WITHOUT = {name: value for name, value in orjson.loads(an_answer()).items() if name != "usage"}


class Told:
    """What the tee said, and when: the body, b"large" or None."""

    def __init__(self) -> None:
        self.told: list[bytes | None] = []

    async def then(self, body: bytes) -> None:
        self.told.append(body)

    async def large(self) -> None:
        self.told.append(b"large")

    async def failed(self) -> None:
        self.told.append(None)

    def tee(self, events: list[bytes], most: int = 10_000) -> Tee:
        async def stream() -> AsyncIterator[bytes]:
            for event in events:
                yield event

        answer = Stream(stream(), Answered(usage=Usage(20, 3, 5)))
        return Tee(answer, most, self.then, self.large, self.failed)


EVENTS = cut(orjson.dumps(WITHOUT), include_usage=False)


async def test_the_whole_is_kept_before_its_last_event_passes() -> None:
    told, passed = Told(), []
    tee = told.tee(EVENTS)
    async for event in tee:
        if event == b"data: [DONE]\n\n":
            assert len(told.told) == 1
        passed.append(event)
    await tee.aclose()
    assert passed == EVENTS
    (body,) = told.told
    assert body is not None
    assert orjson.loads(body) == {**WITHOUT, "usage": USAGE}


async def test_shown_usage_stays() -> None:
    told = Told()
    async for _ in told.tee(cut(an_answer(), include_usage=True)):
        pass
    (body,) = told.told
    assert body is not None
    assert orjson.loads(body) == orjson.loads(an_answer())


async def test_what_is_not_whole_is_not_kept() -> None:
    error = b'data: {"error": {"message": "cut"}}\n\n'
    for events in (EVENTS[:-1], [*EVENTS[:1], error], [*EVENTS[:1], error, EVENTS[-1]], []):
        told = Told()
        tee = told.tee(events)
        assert [event async for event in tee] == events
        await tee.aclose()
        assert told.told == [None]


async def test_what_is_left_early_is_not_kept() -> None:
    told = Told()
    tee = told.tee(EVENTS)
    await anext(tee)
    await tee.aclose()
    await tee.aclose()
    assert told.told == [None]


async def test_it_is_closed_though_whoever_hears_that_it_was_left_is_interrupted() -> None:
    closed = False

    async def stream() -> AsyncIterator[bytes]:
        nonlocal closed
        try:
            yield EVENTS[0]
        finally:
            closed = True

    async def interrupted() -> None:
        raise asyncio.CancelledError

    told = Told()
    tee = Tee(Stream(stream(), Answered()), 100, told.then, told.large, interrupted)
    await anext(tee)
    with pytest.raises(asyncio.CancelledError):
        await tee.aclose()
    assert closed


async def test_of_what_is_too_large_it_is_told_whether_it_was_whole() -> None:
    told = Told()
    assert [event async for event in told.tee(EVENTS, most=100)] == EVENTS
    assert told.told == [b"large"]
    told = Told()
    assert [event async for event in told.tee(EVENTS[:-1], most=100)] == EVENTS[:-1]
    assert told.told == [None]
