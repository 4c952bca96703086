"""What a flight of the tests does: an upstream that answers when it is told to, and its readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal

from serve.ask.contract import Usage
from serve.gateway.contract import Answer, Answered, Stream, Target, Whole
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
