"""What happened to the index while nobody looked after it, or between two looks, is seen."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from serve.search import missing
from serve.search.leftovers import KEPT_SECONDS
from serve.search.missing import Missing
from serve.search.server import SearchServer
from serve.search.vectors import Groups
from tests.serve.search_world import WordVectors, leave_run, record, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


def falsify(state: Path) -> None:
    """Have the one segment say something else, in as many bytes."""
    (file,) = state.glob("segments/*/documents.arrow")
    content = file.read_bytes()
    assert b"refund" in content
    file.write_bytes(content.replace(b"refund", b"REFUSE"))


@pytest.mark.parametrize("index", ["as it was", "of an older version"])
async def test_a_run_deleted_while_no_indexer_ran_is_found_no_longer(
    tmp_path: Path, index: str
) -> None:
    run = leave_run(tmp_path / "2026-03-10", FIRST)
    vectors = WordVectors()
    vectors.away = True
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        world.indexer.look()
        replica = SearchServer(world.state, vectors)
        await replica.refresh()
    shutil.rmtree(run)
    if index != "as it was":
        (tmp_path / ".index" / "index.json").write_text('{"format": 1}')
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        world.server = replica
        world.indexer.look()
        await world.server.refresh()
        assert await world.hits(query="refund") == []
        world.clock.now = KEPT_SECONDS
        world.indexer.look()
        assert list((world.state / "segments").iterdir()) == []


async def test_a_text_changed_while_no_indexer_ran_is_read_again_from_the_run(
    tmp_path: Path,
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    falsify(tmp_path / ".index")
    again = WordVectors()
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=again) as world:
        await world.follow()
        assert again.asked == []
        (hit,) = (await world.answer(query="refund", mode="words"))["hits"]
        assert hit["excerpt"] == "the refund is late"


async def test_a_text_changed_while_its_run_was_away_is_read_again_from_the_run(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    leave_run(runs / "2026-03-10", FIRST)
    async with search_world(runs, state=tmp_path / "index") as world:
        await world.follow()
        runs.rename(tmp_path / "away")
        world.indexer.look()
    falsify(tmp_path / "index")
    async with search_world(runs, state=tmp_path / "index") as world:
        world.indexer.look()
        (tmp_path / "away").rename(runs)
        await world.follow()
        assert world.vectors.asked == []
        (hit,) = (await world.answer(query="refund", mode="words"))["hits"]
        assert hit["excerpt"] == "the refund is late"


async def test_vectors_that_are_kept_vouch_for_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "PORTION", 1)
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        falsify(world.state)
        await world.indexer.embed(10)
        await world.follow()
        (hit,) = (await world.answer(query="refund", mode="words"))["hits"]
        assert hit["excerpt"] == "the refund is late"
        assert sorted(world.vectors.asked) == sorted(row.record.text for row in FIRST)


async def test_vectors_that_are_kept_vouch_for_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "PORTION", 1)
    leave_run(tmp_path / "2026-03-10", [*FIRST, record("r-3", "nothing at all")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        await world.indexer.embed(10)
        (kept,) = world.state.glob("**/*.parquet")
        kept.write_bytes(b"something else")
        await world.indexer.embed(10)
        await world.follow()
        answer = await world.answer(query="parcel", mode="meaning", limit=1)
        assert answer["searched"]["embedded"] == answer["searched"]["texts"] == 3
        assert world.vectors.asked.count(world.vectors.asked[0]) == 2


async def test_a_file_of_vectors_that_others_removed_is_made_again_while_it_is_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "PORTION", 1)
    leave_run(tmp_path / "2026-03-10", [*FIRST, record("r-3", "nothing at all")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        await world.indexer.embed(10)
        (kept,) = world.state.glob("**/*.parquet")
        kept.unlink()
        with suppress(FileNotFoundError):
            await world.indexer.embed(10)
        await world.follow()
        searched = (await world.answer(query="parcel"))["searched"]
        assert searched["embedded"] == searched["texts"] == 3


async def test_a_run_whose_index_cannot_be_read_now_holds_up_no_other_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    leave_run(tmp_path / "2026-03-11", [record("r-3", "nothing at all")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        with monkeypatch.context() as patch:
            real = Missing.next

            def next_of(self: Missing) -> tuple[Groups, list[str]]:
                if self.count == 2:
                    raise OSError(errno.EMFILE, "Too many open files")
                return real(self)

            patch.setattr(Missing, "next", next_of)
            assert await world.indexer.embed(10)
            with pytest.raises(OSError, match="Too many"):
                await world.indexer.embed(10)
        await world.server.refresh()
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        await world.follow()
        assert len(world.vectors.asked) == 3
