"""What is damaged in the index while all is running: noticed, made anew, and no error meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from serve.search import graphs, mapped
from serve.search.server import SearchServer
from tests.serve.search_world import WordVectors, World, leave_run, record, search_world, theme

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


def segment_of(world: World) -> Path:
    (segment,) = (world.state / "segments").iterdir()
    return segment


def overwrite(file: Path, start: int = 128) -> None:
    """Change what is in a file from `start` on, in place, as a broken disk or a stray program
    does."""
    with file.open("r+b") as opened:
        content = opened.read()
        opened.seek(start)
        opened.write(bytes(255 - byte for byte in content[start:]))


@pytest.mark.parametrize(
    "file", ["group.npy", "docs.npy", "starts.npy", "documents.arrow", "names.json", "digests.npy"]
)
@pytest.mark.parametrize("how", ["changed", "removed", "emptied"])
async def test_a_segment_that_is_damaged_is_made_anew_with_its_vectors(
    tmp_path: Path, file: str, how: str
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST, [theme("t-1", "Refunds")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        damaged = segment_of(world) / file
        if how == "changed":
            overwrite(damaged, start=16)
        else:
            damaged.unlink()
            if how == "emptied":
                damaged.write_bytes(b"")
        asked = len(world.vectors.asked)
        await world.follow()
        assert len(world.vectors.asked) == asked
        again = SearchServer(world.state, WordVectors())
        for server in (world.server, again):
            world.server = server
            await server.refresh()
            assert await world.hits(query="refund", mode="words") == ["t-1", "r-1"]
            answer = await world.answer(query="stuck parcel", mode="meaning", limit=1)
            assert [hit["id"] for hit in answer["hits"]] == ["r-2"]
            assert answer["searched"]["embedded"] == answer["searched"]["texts"] == 3
            assert answer["skipped"] == 0


@pytest.mark.parametrize("file", ["docs.npy", "starts.npy", "counts.npy", "documents.arrow"])
async def test_a_segment_that_is_damaged_under_the_hands_of_who_answers_is_no_error(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "SMALL", 0)
    leave_run(tmp_path / "bad", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        bad = segment_of(world)
        leave_run(tmp_path / "good", [record("r-3", "another refund")])
        await world.follow()
        overwrite(bad / file)
        answer = await world.answer(query="refund")
        assert "r-3" in [hit["id"] for hit in answer["hits"]]
        await world.follow()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
        assert (await world.answer(query="refund"))["skipped"] == 0


async def test_a_run_whose_index_is_damaged_is_told_of_until_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "SMALL", 0)
    leave_run(tmp_path / "bad", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        overwrite(segment_of(world) / "docs.npy")
        answer = await world.answer(query="refund")
        assert (answer["hits"], answer["skipped"]) == ([], 1)
        (skipped,) = (await world.reports())["skipped"]
        assert (skipped["name"], "damaged" in skipped["reason"]) == ("bad", True)
        await world.follow()
        assert (await world.reports())["skipped"] == []
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_a_segment_that_is_gone_is_made_anew(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        shutil.rmtree(segment_of(world))
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        await world.follow()
        world.server = SearchServer(world.state, WordVectors())
        await world.server.refresh()
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]


@pytest.mark.parametrize("content", ["", "{", '{"format": 1}'])
async def test_a_list_that_is_damaged_while_nothing_else_happens_is_written_again(
    tmp_path: Path, content: str
) -> None:
    leave_run(tmp_path / "2026-03-10", [record("r-1", "the refund is late")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (world.state / "index.json").write_text(content)
        world.indexer.look()
        world.server = SearchServer(world.state, world.vectors)
        await world.server.refresh()
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_one_number_of_a_vector_that_is_another_is_noticed(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (file,) = world.state.glob("vectors/*/*/*.parquet")
        content = bytearray(file.read_bytes())
        vectors = pq.ParquetFile(file).metadata.row_group(0).column(2)
        begin = vectors.dictionary_page_offset or vectors.data_page_offset
        content[begin + vectors.total_compressed_size - 5] ^= 1
        file.write_bytes(content)
        before = len(world.vectors.asked)
        await world.follow()
        assert len(world.vectors.asked) == before + 2
        found = await world.answer(query="stuck parcel", mode="meaning", limit=1)
        assert [hit["id"] for hit in found["hits"]] == ["r-2"]
        assert found["searched"]["embedded"] == 2


@pytest.mark.parametrize("how", ["changed", "removed"])
async def test_a_graph_that_is_damaged_while_nothing_else_happens_is_made_anew(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        graph = world.graph
        await world.server.refresh()
        if how == "changed":
            overwrite(graph / "vectors.npy")
        else:
            shutil.rmtree(graph)
        world.indexer.make_graphs()
        world.server = SearchServer(world.state, WordVectors())
        await world.server.refresh()
        assert graph.name not in (world.state / "index.json").read_text()
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]
