"""Graphs for which there is no room, memory or model now."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serve.search import grapher, graphs, upkeep
from tests.serve.search_world import leave_run, record, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


def failing(number: int) -> Callable[..., Any]:
    """What always raises the OSError of a number."""

    def fail(*given: Any, **named: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


async def test_a_graph_for_which_there_was_no_room_is_made_once_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        with monkeypatch.context() as patched:
            patched.setattr(grapher, "write_graph", failing(errno.ENOSPC))
            with pytest.raises(OSError, match="No space"):
                world.indexer.make_graphs()
        world.indexer.make_graphs()
        assert len(list((world.state / "graphs").iterdir())) == 1


async def test_a_graph_that_cannot_be_read_now_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        graph = world.graph
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        with monkeypatch.context() as patched:
            patched.setattr(grapher, "Graph", failing(errno.EMFILE))
            with pytest.raises(OSError, match="Too many open files"):
                world.indexer.make_graphs()
        world.indexer.make_graphs()
        assert graph.name in (world.state / "index.json").read_text()


async def test_graphs_are_looked_after_while_texts_wait_for_a_model_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    runs, state = leave_run(tmp_path / "retro" / "one", FIRST).parent, tmp_path / "index"
    async with search_world(runs, state=state) as world:
        await world.follow()
        world.indexer.make_graphs()
        (graph,) = (state / "graphs").iterdir()
        (graph / "vectors.npy").unlink()
        leave_run(runs / "two", [record("r-3", "a text that has no vector")])
        world.vectors.away = True
        monkeypatch.setattr(upkeep, "LOOK_SECONDS", 0)
        work = upkeep.Upkeep(world.indexer)
        async with asyncio.timeout(60):
            while [each.name for each in (state / "graphs").iterdir()] == [graph.name]:
                work.begin()
                work.check()
                await asyncio.sleep(0)
        work.end()
