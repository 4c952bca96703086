"""The index follows the runs: what is new, gone, damaged, and what was embedded once."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from serve.ask.errors import Unavailable
from serve.search import missing
from serve.search.catalog import Catalog
from serve.search.embedding import Encoded
from serve.search.indexer import Indexer
from serve.search.leftovers import KEPT_SECONDS
from serve.search.runs import UNDER_WAY
from serve.search.settings import RunsSettings
from tests.serve.search_world import WordVectors, leave_run, record, renamed, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


async def test_a_run_that_ends_is_found_by_its_words_before_it_has_vectors(tmp_path: Path) -> None:
    vectors = WordVectors()
    vectors.away = True
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        await world.server.refresh()
        assert await world.hits(query="refund") == []
        leave_run(tmp_path / "2026-03-10", FIRST)
        world.indexer.look()
        await world.server.refresh()
        answer = await world.answer(query="refund")
        assert [hit["id"] for hit in answer["hits"]] == ["r-1"]
        assert (answer["searched"]["texts"], answer["searched"]["embedded"]) == (2, 0)
        vectors.away = False
        await world.follow()
        assert (await world.answer(query="refund"))["searched"]["embedded"] == 2


async def test_what_is_read_goes_on_to_answer_until_the_next_index_is_there(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        before = world.server
        leave_run(tmp_path / "2026-03-11", [record("r-3", "another refund")])
        world.indexer.look()
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        await before.refresh()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}


async def test_a_run_that_is_deleted_is_not_found_and_leaves_nothing(tmp_path: Path) -> None:
    kept = leave_run(tmp_path / "2026-03-10", FIRST)
    gone = leave_run(tmp_path / "2026-03-11", [record("r-3", "a private refund")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert len(list((world.state / "segments").iterdir())) == 2
        shutil.rmtree(gone)
        await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        world.clock.now = KEPT_SECONDS
        world.indexer.look()
        assert len(list((world.state / "segments").iterdir())) == 1
        assert kept.exists()


async def test_a_run_that_was_made_again_is_read_again(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (folder / UNDER_WAY).write_text("{}")
        (folder / "themes.parquet").unlink()
        await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-1"]  # the one before
        leave_run(folder, [record("r-9", "a refund of another kind")])
        (folder / UNDER_WAY).unlink()
        await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-9"]


async def test_no_text_is_embedded_twice_in_whichever_run_it_is(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert sorted(world.vectors.asked) == sorted(row.record.text for row in FIRST)
        # Another day says the same and one thing more; the first day is rendered again.
        same = [renamed(row, f"again-{row.record.id}") for row in FIRST]
        leave_run(tmp_path / "2026-03-11", [*same, record("r-3", "a new thing")])
        leave_run(tmp_path / "2026-03-10", FIRST, page="rendered again")
        await world.follow()
        assert world.vectors.asked[2:] == ["a new thing"]
        again = WordVectors()
        async with search_world(tmp_path, state=tmp_path / ".index", vectors=again) as restarted:
            await restarted.follow()
            found = await restarted.hits(query="stuck parcel", mode="meaning", limit=2)
            assert set(found) == {"r-2", "again-r-2"}
        assert again.asked == ["stuck parcel"]


async def test_long_texts_that_begin_alike_share_a_vector_and_are_hits_of_their_own(
    tmp_path: Path,
) -> None:
    begin = "the same beginning " * 40
    leave_run(
        tmp_path / "day",
        [record("r-1", f"{begin} ends badly"), record("r-2", f"{begin} ends well")],
    )
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        hits = (await world.answer(query="beginning", mode="words"))["hits"]
        assert sorted((hit["id"], hit["like"]) for hit in hits) == [("r-1", 0), ("r-2", 0)]
        assert len(world.vectors.asked) == 1
        assert set(await world.hits(query="beginning", mode="meaning")) == {"r-1", "r-2"}
        leave_run(tmp_path / "next", [record("r-3", f"{begin} has no end")])
        asked = len(world.vectors.asked)
        await world.follow()
        assert len(world.vectors.asked) == asked


async def test_a_model_that_fails_in_the_middle_loses_one_portion(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", [record(f"r-{n}", f"text number {n}") for n in range(200)])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        assert await world.indexer.embed(10)
        world.vectors.away = True
        with pytest.raises(Unavailable):
            await world.indexer.embed(10)
        assert 0 < world.indexer.behind < 200
        world.vectors.away = False
        await world.follow()
        assert len(world.vectors.asked) == 200
        assert world.indexer.behind == 0


async def test_files_of_vectors_stay_few_while_a_long_run_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "PORTION", 1)
    leave_run(tmp_path / "2026-03-10", [record(f"r-{n}", f"text number {n}") for n in range(40)])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        most = 0
        while await world.indexer.embed(10):
            files = list(world.state.glob("vectors/*/*/*.parquet"))
            most = max(most, len(files))
        assert most <= missing.TOGETHER + 2
        assert len(files) == 1
        await world.server.refresh()
        assert len(await world.hits(query="text number", mode="meaning", limit=100)) == 40


async def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    other = WordVectors()
    other.model = "another"
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=other) as world:
        await world.follow()
        assert len(other.asked) == 2
        assert await world.hits(query="parcel", mode="meaning", limit=1) == ["r-2"]


async def test_a_run_under_way_is_not_read(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "2026-03-10", FIRST)
    (folder / UNDER_WAY).write_text("{}")
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert (await world.reports())["data"] == []
        assert "under way" in (await world.reports())["skipped"][0]["reason"]


async def test_runs_are_not_looked_for_behind_links(tmp_path: Path) -> None:
    leave_run(tmp_path / "elsewhere" / "2026-03-10", FIRST)
    retro = tmp_path / "retro"
    retro.mkdir()
    (retro / "linked").symlink_to(tmp_path / "elsewhere")
    (retro / "2026-03-11").symlink_to(tmp_path / "elsewhere" / "2026-03-10")
    half = leave_run(retro / "half", FIRST)
    (half / "results" / "part-00000.parquet").unlink()
    (half / "results" / "part-00000.parquet").symlink_to(
        tmp_path / "elsewhere" / "2026-03-10" / "results" / "part-00000.parquet"
    )
    async with search_world(retro, state=tmp_path / "index") as world:
        await world.follow()
        told = await world.reports()
        assert told["data"] == []
        assert [each["name"] for each in told["skipped"]] == ["half"]


async def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    leave_run(tmp_path / "retro" / "2026-03-10", FIRST)
    entries = [RunsSettings(path=str(tmp_path / "retro"))]
    indexer = Indexer(entries, tmp_path / "index", WordVectors())
    indexer.look()
    written = (tmp_path / "index" / "index.json").stat().st_ino
    indexer.look()
    assert (tmp_path / "index" / "index.json").stat().st_ino == written
    catalog = Catalog.read(tmp_path / "index")
    assert catalog is not None
    assert [run.run.name for run in catalog.runs] == ["2026-03-10"]


async def test_a_new_run_is_found_while_another_one_is_still_embedded(tmp_path: Path) -> None:
    class Slow(WordVectors):
        """Gives nothing until it is told to."""

        def __init__(self) -> None:
            super().__init__()
            self.asked_for, self.go_on = asyncio.Event(), asyncio.Event()

        async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
            self.asked_for.set()
            await self.go_on.wait()
            return await super().encode(texts, seconds)

    leave_run(tmp_path / "2026-03-10", FIRST)
    vectors = Slow()
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        world.indexer.look()
        embedding = asyncio.create_task(world.indexer.embed(10))
        await vectors.asked_for.wait()
        leave_run(tmp_path / "2026-03-11", [record("r-3", "another refund")])
        await asyncio.to_thread(world.indexer.look)
        await world.server.refresh()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
        vectors.go_on.set()
        assert await embedding
        assert world.indexer.behind == 1


async def test_a_run_without_a_record_is_listed_and_found_nowhere(tmp_path: Path) -> None:
    leave_run(tmp_path / "empty", [])
    leave_run(tmp_path / "full", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        told = await world.reports()
        assert [run["records"] for run in told["data"]] in ([0, 2], [2, 0])
        assert told["skipped"] == []
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        assert await world.hits(query="refund", run="empty") == []
