"""Models that are not ready where somebody else can be asked, in simulated seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from serve.ask.errors import AskError
from serve.gateway.failures import DOWN_SECONDS
from serve.gateway.readiness import KNOWN_SECONDS, WAIT_SECONDS, Readiness
from serve.models.errors import ModelNotLoaded
from tests.serve.virtual_loop import virtually

TIMEOUT = 600.0


class World:
    """A model that takes `seconds` to get ready, or never does for `error`. `asked`: how often
    it was waited for."""

    def __init__(self, seconds: float, error: AskError | None = None) -> None:
        self.seconds = seconds
        self.error = error
        self.asked = 0
        self.cancelled = 0
        self.clock = asyncio.get_running_loop().time
        self.readiness = Readiness(self, ("pooled",), self.clock)

    async def ready(self, model: str) -> None:
        """See `ReadyCalls.ready`."""
        self.asked += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error

    async def answer(self, *_: Any) -> bytes:
        """See `ModelCalls.answer`: nobody gets here."""
        raise NotImplementedError

    def stream(self, *_: Any) -> AsyncGenerator[bytes]:
        """See `ModelCalls.stream`: nobody gets here."""
        raise NotImplementedError

    async def wait(self, model: str = "m", within: float = TIMEOUT) -> tuple[bool, float]:
        """Whether it is ready, and in how many seconds that was known."""
        began = self.clock()
        try:
            await self.readiness.wait(model, began + within)
        except ModelNotLoaded:
            return False, self.clock() - began
        return True, self.clock() - began


@virtually
async def test_one_that_takes_long_costs_requests_seconds_once_and_is_asked_when_it_is_there() -> (
    None
):
    world = World(60)
    crowd = [world.wait() for _ in range(20)]
    assert await asyncio.gather(*crowd) == [(False, WAIT_SECONDS)] * 20
    for _ in range(20):
        assert await world.wait() == (False, 0)
    await asyncio.sleep(60)
    assert await world.wait() == (True, 0)
    assert world.asked == 1


@virtually
async def test_one_that_is_there_soon_is_waited_for_within_a_share_of_the_requests_time() -> None:
    world = World(2)
    short, long = await asyncio.gather(world.wait(within=4), world.wait())
    assert (short, long) == ((False, 1), (True, 2))


@virtually
async def test_a_failure_is_remembered_for_a_while() -> None:
    world = World(1, ModelNotLoaded("no application", 503, 60))
    assert await world.wait() == (False, 1)
    assert await world.wait() == (False, 0)
    assert world.asked == 1
    await asyncio.sleep(DOWN_SECONDS)
    world.error = None
    assert await world.wait() == (True, 1)


@virtually
async def test_what_was_ready_is_so_for_a_while_unless_it_was_lost_or_may_make_room() -> None:
    world = World(0)
    for _ in range(3):
        await world.wait()
    assert world.asked == 1
    await asyncio.sleep(KNOWN_SECONDS)
    await world.wait()
    assert world.asked == 2
    world.readiness.lost("m")
    await world.wait()
    assert world.asked == 3
    for _ in range(3):
        await world.wait("pooled")
    assert world.asked == 6


@virtually
async def test_nobody_is_waited_for_after_the_end() -> None:
    world = World(60)
    await world.wait()
    await world.readiness.aclose()
    assert world.cancelled == 1
