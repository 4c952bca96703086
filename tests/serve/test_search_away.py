"""Runs whose folders cannot be seen for a while: not searched, told of, and not made anew."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from serve.search.leftovers import HELD_SECONDS, KEPT_SECONDS
from serve.search.settings import RunsSettings
from tests.serve.search_world import World, leave_run, record, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


def segments_of(world: World) -> list[Path]:
    """What is kept of runs: their segments and their vectors."""
    return [*(world.state / "segments").iterdir(), *(world.state / "vectors").glob("*")]


def look_for(world: World, seconds: float) -> None:
    """Look for runs now and after `seconds`."""
    world.indexer.look()
    world.clock.now += seconds
    world.indexer.look()


async def test_a_named_folder_that_is_away_is_told_of_and_embedded_once(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    leave_run(volume / "2026-03-10", FIRST)
    async with search_world(volume, state=tmp_path / "index") as world:
        await world.follow()
        volume.rename(tmp_path / "away")
        look_for(world, HELD_SECONDS - 1)
        await world.server.refresh()
        assert (await world.answer(query="refund", mode="words"))["hits"] == []
        (skipped,) = (await world.reports())["skipped"]
        assert skipped["name"] == "2026-03-10"
        assert os.strerror(errno.ENOENT) in skipped["reason"]
        (tmp_path / "away").rename(volume)
        await world.follow()
        assert sorted(world.vectors.asked) == sorted(row.record.text for row in FIRST)
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        assert (await world.reports())["skipped"] == []


async def test_a_named_folder_that_is_away_at_every_start_keeps_its_vectors(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    leave_run(volume / "2026-03-10", FIRST)
    async with search_world(volume, state=tmp_path / "index") as world:
        await world.follow()
    volume.rename(tmp_path / "away")
    for _ in range(2):
        async with search_world(volume, state=tmp_path / "index") as world:
            look_for(world, 10 * KEPT_SECONDS)
            await world.server.refresh()
            assert len((await world.reports())["skipped"]) == 1
    (tmp_path / "away").rename(volume)
    async with search_world(volume, state=tmp_path / "index") as world:
        await world.follow()
        assert world.vectors.asked == []
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_a_run_that_comes_back_as_another_copy_keeps_its_vectors(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    leave_run(volume / "2026-03-10", FIRST)
    async with search_world(volume, state=tmp_path / "index") as world:
        await world.follow()
        volume.rename(tmp_path / "away")
        look_for(world, 2 * KEPT_SECONDS)
        shutil.copytree(tmp_path / "away", volume)
        await world.follow()
        assert len(world.vectors.asked) == 2
        world.indexer.look()
        assert len(segments_of(world)) == 2  # of the one before nothing is left


async def test_a_run_that_is_made_again_while_the_model_is_away_keeps_its_vectors(
    tmp_path: Path,
) -> None:
    run = leave_run(tmp_path / "runs" / "2026-03-10", FIRST)
    async with search_world(tmp_path / "runs", state=tmp_path / "index") as world:
        await world.follow()
        leave_run(run, [*FIRST, record("r-3", "another refund")])
        look_for(world, 2 * KEPT_SECONDS)
        await world.follow()
        assert len(world.vectors.asked) == 3


async def test_the_text_of_a_run_that_was_made_again_stays_no_longer_than_a_day(
    tmp_path: Path,
) -> None:
    run = leave_run(tmp_path / "runs" / "2026-03-10", FIRST)
    async with search_world(tmp_path / "runs", state=tmp_path / "index") as world:
        world.indexer.look()
        (before,) = segments_of(world)
        leave_run(run, FIRST[:1])
        look_for(world, HELD_SECONDS)
        (now,) = segments_of(world)
        assert now != before


async def test_what_is_embedded_before_the_first_look_forgets_no_run_that_is_away(
    tmp_path: Path,
) -> None:
    volume = tmp_path / "volume"
    leave_run(volume / "2026-03-10", FIRST)
    async with search_world(volume, state=tmp_path / "index") as world:
        await world.follow()
    volume.rename(tmp_path / "away")
    async with search_world(volume, state=tmp_path / "index") as world:
        assert not await world.indexer.embed(10)
        world.indexer.make_graphs()
        look_for(world, KEPT_SECONDS)
        await world.server.refresh()
        assert len((await world.reports())["skipped"]) == 1
        (tmp_path / "away").rename(volume)
        await world.follow()
        assert world.vectors.asked == []


async def test_nothing_is_left_of_a_folder_that_is_away_for_a_day(tmp_path: Path) -> None:
    leave_run(tmp_path / "volume" / "2026-03-10", FIRST)
    async with search_world(tmp_path / "volume", state=tmp_path / "index") as world:
        await world.follow()
        shutil.rmtree(tmp_path / "volume")
        look_for(world, HELD_SECONDS)
        assert segments_of(world) == []


async def test_a_run_that_is_deleted_is_gone_though_another_folder_is_away(tmp_path: Path) -> None:
    leave_run(tmp_path / "one" / "2026-03-10", FIRST)
    leave_run(tmp_path / "two" / "2026-03-10", [record("r-3", "another refund")])
    async with search_world(tmp_path / "one", tmp_path / "two", state=tmp_path / "index") as world:
        await world.follow()
        before = segments_of(world)
        (tmp_path / "two").rename(tmp_path / "away")
        shutil.rmtree(tmp_path / "one" / "2026-03-10")
        look_for(world, KEPT_SECONDS)
        assert len(segments_of(world)) == len(before) / 2


async def test_a_named_link_that_is_away_is_no_deletion_of_what_it_led_to(tmp_path: Path) -> None:
    leave_run(tmp_path / "volume" / "2026-03-10", FIRST)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "volume")
    async with search_world(link, state=tmp_path / "index") as world:
        await world.follow()
        link.unlink()
        look_for(world, KEPT_SECONDS)
        link.symlink_to(tmp_path / "volume")
        await world.follow()
        assert len(world.vectors.asked) == 2


async def test_what_an_entry_does_not_name_any_more_is_gone(tmp_path: Path) -> None:
    leave_run(tmp_path / "one" / "2026-03-10", FIRST)
    (tmp_path / "two").mkdir()
    async with search_world(tmp_path / "one", state=tmp_path / "index") as world:
        await world.follow()
    (tmp_path / "one").rename(tmp_path / "away")
    async with search_world(tmp_path / "two", state=tmp_path / "index") as world:
        look_for(world, KEPT_SECONDS)
        assert segments_of(world) == []


async def test_what_an_entry_does_not_name_any_more_is_gone_though_another_folder_is_away(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    leave_run(one / "2026-03-10", FIRST)
    leave_run(two / "2026-03-10", [record("r-3", "another refund")])
    async with search_world(one, two, state=tmp_path / "index") as world:
        await world.follow()
        before = segments_of(world)
    one.rename(tmp_path / "away")
    async with search_world(one, state=tmp_path / "index") as world:
        look_for(world, KEPT_SECONDS)
        await world.server.refresh()
        assert len((await world.reports())["skipped"]) == 1
        assert len(segments_of(world)) == len(before) / 2


async def test_who_sees_that_a_run_is_away_is_who_would_see_the_run(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    leave_run(volume / "2026-03-10", FIRST)
    for tenant in ("a", "b"):
        entry = RunsSettings(path=str(volume), tenant=tenant)
        async with search_world(entry, state=tmp_path / "index") as world:
            world.indexer.look()
            await world.server.refresh()
            if volume.exists():
                volume.rename(tmp_path / "away")
            else:
                assert (await world.reports("a"))["skipped"] == []
                assert len((await world.reports("b"))["skipped"]) == 1


@pytest.mark.parametrize("place", ["volume", "volume/team", "volume/team/2026-03-10"])
async def test_a_folder_that_cannot_be_listed_now_keeps_its_runs(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if path == str(tmp_path / place):
            raise OSError(errno.ESTALE, "Stale file handle")
        return scandir(path)

    leave_run(tmp_path / "volume" / "team" / "2026-03-10", FIRST)
    leave_run(tmp_path / "volume" / "other", [record("r-3", "another refund")])
    async with search_world(tmp_path / "volume", state=tmp_path / "index") as world:
        await world.follow()
        with monkeypatch.context() as patched:
            patched.setattr(os, "scandir", refusing)
            look_for(world, KEPT_SECONDS)
            await world.server.refresh()
            for skipped in (await world.reports())["skipped"]:
                assert "Stale file handle" in skipped["reason"]
            left = await world.hits(query="refund", mode="words")
            assert left == ([] if place == "volume" else ["r-3"])
        await world.follow()
        assert len(world.vectors.asked) == 3
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}


async def test_a_folder_that_never_could_be_listed_is_told_of_unless_it_is_not_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("no folder")
    async with search_world(
        tmp_path / "file", tmp_path / "later", state=tmp_path / "index"
    ) as world:
        for _ in range(2):
            await world.follow()
            told = (await world.reports())["skipped"]
            assert [each["name"] for each in told] == ["file"]


async def test_a_run_that_cannot_be_read_for_a_while_is_embedded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_open = os.open

    def refusing(path: Any, *given: Any, **named: Any) -> int:
        if path == "results":
            raise OSError(errno.EIO, "Input/output error")
        return os_open(path, *given, **named)

    leave_run(tmp_path / "runs" / "2026-03-10", FIRST)
    async with search_world(tmp_path / "runs", state=tmp_path / "index") as world:
        await world.follow()
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", refusing)
            look_for(world, KEPT_SECONDS)
        await world.follow()
        assert len(world.vectors.asked) == 2
