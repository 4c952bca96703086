"""One damaged run, or one damaged file of the index, keeps nothing else from being searched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serve.search import graphs
from serve.search.embedding import Encoded
from serve.search.leftovers import KEPT_SECONDS
from serve.search.settings import RunsSettings
from tests.serve.search_world import WordVectors, leave_run, record, search_world, theme

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("results/part-00000.parquet", b"PAR1 and no more", "results"),
        ("themes.parquet", b"", "themes"),
        ("report.json", b"{broken", "report.json"),
        ("report.json", b"[]", "report.json"),
        ("report.json", b'{"run": {}, "period": {}, "ledger": {"records": 1e999}}', "report.json"),
        ("ledger.json", None, "ledger.json"),
        ("themes.parquet", None, "themes.parquet"),
    ],
)
async def test_a_damaged_run_is_skipped_named_and_counted(
    tmp_path: Path, file: str, content: bytes | None, said: str
) -> None:
    leave_run(tmp_path / "good", FIRST)
    bad = leave_run(tmp_path / "bad", [record("r-9", "never to be found refund")])
    if content is None:
        (bad / file).unlink()
    else:
        (bad / file).write_bytes(content)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        answer = await world.answer(query="refund", mode="words")
        assert ([hit["id"] for hit in answer["hits"]], answer["skipped"]) == (["r-1"], 1)
        (skipped,) = (await world.reports())["skipped"]
        assert skipped["name"] == "bad"
        assert said in skipped["reason"]
        leave_run(bad, [record("r-9", "now it can be found: refund")])
        await world.follow()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-9"}


@pytest.mark.parametrize("column", ["id", "source"])
async def test_rows_without_what_names_them_are_a_damaged_run(tmp_path: Path, column: str) -> None:
    leave_run(tmp_path / "good", FIRST)
    bad = leave_run(tmp_path / "bad", FIRST)
    file = bad / "results" / "part-00000.parquet"
    rows = [{**row, column: None} for row in pq.read_table(file).to_pylist()]
    schema = pa.schema([field.with_nullable(True) for field in pq.read_schema(file)])
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (skipped,) = (await world.reports())["skipped"]
        assert "without an id or a source" in skipped["reason"]
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_names_that_are_no_utf8_keep_no_other_run_from_being_searched(tmp_path: Path) -> None:
    leave_run(tmp_path / "good", FIRST)
    os.rename(leave_run(tmp_path / "bad", FIRST), os.fsencode(tmp_path) + b"/bad\xff")
    leave_run(tmp_path / "odd", [record("r-3", "a refund in a file of an odd name")])
    results = os.fsencode(tmp_path / "odd" / "results")
    os.rename(results + b"/part-00000.parquet", results + b"/part-\xff.parquet")
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
        (skipped,) = (await world.reports())["skipped"]
        assert skipped["name"] == "bad\N{REPLACEMENT CHARACTER}"
        assert "UTF-8" in skipped["reason"]


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(5, "broken disk")])
async def test_a_folder_that_cannot_be_read_now_is_skipped_until_it_can(
    tmp_path: Path, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_run(tmp_path / "good", FIRST)
    leave_run(tmp_path / "bad", [record("r-9", "another refund")])
    os_open = os.open

    def refusing(path: Any, *given: Any, **named: Any) -> int:
        if path == "results" and "bad" in os.readlink(f"/proc/self/fd/{named['dir_fd']}"):
            raise error
        return os_open(path, *given, **named)

    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", refusing)
            await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-1"]
        (skipped,) = (await world.reports())["skipped"]
        assert skipped["name"] == "bad"
        assert error.strerror in skipped["reason"]
        assert str(tmp_path) not in skipped["reason"]
        await world.follow()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-9"}


async def test_a_folder_that_merely_has_results_is_no_run(tmp_path: Path) -> None:
    leave_run(tmp_path / "team" / "day", FIRST)
    (tmp_path / "team" / "results").mkdir()
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert [run["name"] for run in (await world.reports())["data"]] == ["day"]
        assert (await world.reports())["skipped"] == []


async def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST, [theme("t-1", "Refunds")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (segment,) = (world.state / "segments").iterdir()
        (segment / "group.npy").write_bytes(b"nothing")
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert "r-1" in await world.hits(query="refund", mode="words")


async def test_a_broken_catalog_leaves_the_index_that_was_read(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (world.state / "index.json").write_text("{")
        await world.server.refresh()
        assert await world.hits(query="refund", mode="words") == ["r-1"]


@pytest.mark.parametrize(
    "file", ["group.npy", "first.npy", "digests.npy", "themes_no.npy", "docs.npy", "starts.npy"]
)
@pytest.mark.parametrize("content", [b"", b"nothing", None])
async def test_whichever_file_of_a_segment_is_damaged_it_is_made_anew(
    tmp_path: Path, file: str, content: bytes | None
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST, [theme("t-1", "Refunds")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (segment,) = (world.state / "segments").iterdir()
        if content is None:  # a row less
            rows = np.load(segment / file)
            np.save(segment / file, np.append(rows, rows[:2])[1:-2])
        else:
            (segment / file).write_bytes(content)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.server.refresh()  # whatever is there: it answers
        await world.answer(query="refund", mode="words")
        await world.follow()
        assert "r-1" in await world.hits(query="refund", mode="words")
        assert "r-2" in await world.hits(query="stuck parcel", mode="meaning")


async def test_what_a_killed_indexer_left_half_written_is_removed(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (vectors,) = world.state.glob("vectors/*/*")
        files = [world.state / ".index.json.0.part", vectors / ".0.part"]
        files.append(world.state / "models" / ".0.part")
        folders = [world.state / "segments" / ".run.0.part", world.state / "graphs" / ".g.0.part"]
        for folder in folders:
            folder.mkdir(parents=True)
            (folder / "file").write_text("half")
        for file in files:
            file.write_text("half")
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        assert not any(each.exists() for each in (*files, *folders))
        await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-1"]


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        *(
            (name, kept)
            for name in ("graph.usearch", "rows.npy", "vectors.npy")
            for kept in (0, 0.5)
        ),
        ("graph.usearch", 1),
        ("rows.npy", 1),
        ("vectors.npy", 1),
    ],
)
async def test_a_graph_that_is_damaged_is_left_out_and_made_anew(
    tmp_path: Path, file: str, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        graph = world.graph
        content = (graph / file).read_bytes()
        kept_bytes = int(kept * len(content))
        # A file as long as it was may hold anything but its beginning.
        rest = b"" if kept < 1 else b"\xff" * (len(content) // 2)
        (graph / file).write_bytes(content[: kept_bytes - len(rest)] + rest)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.server.refresh()
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]
        await world.follow()
        world.indexer.make_graphs()
        await world.server.refresh()
        assert graph.name not in (world.state / "index.json").read_text()
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]


async def test_a_damaged_file_of_vectors_is_embedded_again(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (file,) = world.state.glob("vectors/*/*/*.parquet")
        content = bytearray(file.read_bytes())
        content[4:60] = bytes(56)  # its rows, and not what it says of itself at its end
        file.write_bytes(content)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        searched = (await world.answer(query="parcel"))["searched"]
        assert searched["embedded"] == searched["texts"] == 2
        assert set(await world.hits(query="parcel", mode="meaning")) == {"r-1", "r-2"}


async def test_vectors_of_another_length_than_before_leave_the_search_answering(
    tmp_path: Path,
) -> None:
    class Short(WordVectors):
        """The model of the same name that gives shorter vectors."""

        async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
            vectors, probe = await super().encode(texts, seconds)
            return Encoded(vectors[:, :32], probe[:32] / np.linalg.norm(probe[:32]))

    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    leave_run(tmp_path / "2026-03-11", [record("r-3", "a new parcel"), FIRST[1]])
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=Short()) as world:
        await world.follow()
        assert set(await world.hits(query="parcel", mode="meaning")) == {"r-1", "r-2", "r-3"}
        assert world.indexer.behind == 0


async def test_a_run_that_comes_back_is_embedded_though_it_was_before(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "retro" / "2026-03-10", FIRST)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        folder.rename(tmp_path / "away")
        world.indexer.look()
        world.clock.now = KEPT_SECONDS
        world.indexer.look()
        assert list((world.state / "segments").iterdir()) == []
        (tmp_path / "away").rename(folder)
        await world.follow()
        assert set(await world.hits(query="parcel", mode="meaning")) == {"r-1", "r-2"}


async def test_a_run_that_another_tenant_gets_is_found_by_its_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "retro" / "one", FIRST)
    leave_run(tmp_path / "retro" / "two", [record("r-3", "a parcel that stays")])
    entries = [RunsSettings(path=str(tmp_path / "retro"), tenant="a")]
    async with search_world(*entries, state=tmp_path / "index") as world:
        await world.follow()
        world.indexer.make_graphs()
    entries.append(RunsSettings(path=str(tmp_path / "retro" / "one"), tenant="b"))
    async with search_world(*entries, state=tmp_path / "index") as world:
        await world.follow()
        assert set(await world.hits("a", query="parcel", mode="meaning")) == {"r-3"}
        assert set(await world.hits("b", query="parcel", mode="meaning")) == {"r-1", "r-2"}
