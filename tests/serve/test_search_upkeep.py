"""What the indexer does in the background."""

from __future__ import annotations

import asyncio
import threading

import pytest

from serve.ask.errors import Unavailable
from serve.search import upkeep


async def test_a_model_that_is_away_is_asked_ever_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    naps: list[float] = []
    enough, over = asyncio.Event(), threading.Event()
    sleep = asyncio.sleep

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 8:
            enough.set()
        await sleep(0)

    class Away:
        """An index that waits for a model. All else of it takes for ever."""

        behind = 3

        async def embed(self, seconds: float) -> bool:
            raise Unavailable("away")

        def look(self) -> None:
            over.wait()

        def make_graphs(self) -> None:
            over.wait()

    monkeypatch.setattr(asyncio, "sleep", nap)
    work = upkeep.Upkeep(Away())  # type: ignore[arg-type]
    try:
        work.begin()
        await enough.wait()
        work.check()
    finally:
        work.end()
        over.set()
    assert naps[:8] == [2, 4, 8, 16, 32, 60, 60, 60]
