"""What the indexer does in the background."""

from __future__ import annotations

import asyncio
import threading

import pytest

from serve.ask.errors import Unavailable
from serve.search.upkeep import Upkeep
from tests.serve.search_world import Clock


class Quiet:
    """An index all of whose work takes for ever, but for what is told otherwise."""

    behind = 3

    def __init__(self) -> None:
        self.over = threading.Event()

    async def embed(self, seconds: float) -> bool:
        await asyncio.Event().wait()
        return False

    def look(self) -> None:
        self.over.wait()

    def make_graphs(self) -> None:
        self.over.wait()


async def naps(
    index: Quiet, clock: Clock, count: int, monkeypatch: pytest.MonkeyPatch
) -> list[float]:
    """The seconds of the first pauses that are made."""
    made: list[float] = []
    enough, sleep = asyncio.Event(), asyncio.sleep

    async def nap(seconds: float) -> None:
        made.append(seconds)
        if len(made) == count:
            enough.set()
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", nap)
    work = Upkeep(index, clock)  # type: ignore[arg-type]
    try:
        work.begin()
        await enough.wait()
        work.check()
    finally:
        work.end()
        index.over.set()
    return made[:count]


async def test_a_model_that_is_away_is_asked_ever_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Away(Quiet):
        async def embed(self, seconds: float) -> bool:
            raise Unavailable("away")

    made = await naps(Away(), Clock(), 8, monkeypatch)
    assert made == [2, 4, 8, 16, 32, 60, 60, 60]


async def test_runs_are_looked_for_less_often_where_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took, clock = iter((0.1, 0.5, 1, 5, 600, 0.1)), Clock()

    class Long(Quiet):
        def look(self) -> None:
            clock.now += next(took, 0)

    made = await naps(Long(), clock, 6, monkeypatch)
    assert made == pytest.approx([2, 2, 4, 20, 30, 2])
