"""Replicas that lack open files, memory or parts of the index, or have files cut under them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from serve.search import graphs, snapshot
from serve.search.mapped import SMALL, array_of
from serve.search.segment import Segment
from serve.search.server import SearchServer
from serve.search.vectors import READ_ERRORS
from tests.serve.search_world import WordVectors, leave_run, record, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]
LONG = [record(f"r-{n}", f"refund {n} " + f"w{n} " * 400) for n in range(40)]
"""So much that its files are mapped."""


@contextmanager
def refused(owner: Any, name: str, error: Exception) -> Iterator[None]:
    """While this lasts `owner.name` raises an error."""

    def fail(*given: Any, **named: Any) -> Any:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, fail)
        yield


def held_below(folder: Path) -> tuple[list[str], int]:
    """Files below `folder` that this process has open, and how many mappings of such it has."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    opened = [os.readlink(link) for link in links if os.path.lexists(link)]
    mappings = Path("/proc/self/maps").read_text().splitlines()
    return [each for each in opened if each.startswith(str(folder))], sum(
        str(folder) in line for line in mappings
    )


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "/a/path"), MemoryError()])
async def test_a_run_that_cannot_be_opened_now_is_skipped_until_it_can(
    tmp_path: Path, error: Exception
) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        leave_run(tmp_path / "two", [record("r-3", "another refund")])
        world.indexer.look()
        while await world.indexer.embed(10):
            pass
        with refused(Segment, "open", error):
            await world.server.refresh()
            assert await world.hits(query="refund", mode="words") == ["r-1"]
            (skipped,) = (await world.reports())["skipped"]
            assert skipped["name"] == "two"
            assert "cannot be read now" in skipped["reason"]
            assert "/a/path" not in skipped["reason"]
        await world.server.refresh()
        assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
        assert (await world.reports())["skipped"] == []


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, ""), MemoryError()])
async def test_an_index_that_cannot_be_opened_now_is_not_made_anew(
    tmp_path: Path, error: Exception
) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (segment,) = (world.state / "segments").iterdir()
        before = segment.stat().st_ino
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        with refused(Segment, "open", error):
            world.indexer.look()
        await world.follow()
        assert (segment.stat().st_ino, world.vectors.asked) == (before, [])
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_vectors_that_cannot_be_read_now_leave_those_of_before(tmp_path: Path) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        leave_run(tmp_path / "two", [record("r-3", "another refund")])
        world.indexer.look()
        while await world.indexer.embed(10):
            pass
        with refused(snapshot, "read_parts", OSError(errno.EMFILE, "")):
            await world.server.refresh()
            assert set(await world.hits(query="refund", mode="meaning")) == {"r-1", "r-2"}
            assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
        await world.server.refresh()
        assert set(await world.hits(query="refund", mode="meaning")) == {"r-1", "r-2", "r-3"}


async def test_a_query_that_fails_while_nothing_can_be_opened_loses_no_run(tmp_path: Path) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        failing = [OSError(errno.EMFILE, "")]
        with pytest.MonkeyPatch.context() as patched:

            def check(self: Any, tenant: str) -> None:
                if failing:
                    raise failing.pop()

            patched.setattr(snapshot.Snapshot, "check", check)
            with refused(Segment, "open", OSError(errno.EMFILE, "")):
                assert await world.hits(query="refund", mode="words") == ["r-1"]
        await world.server.refresh()
        assert await world.hits(query="refund", mode="words") == ["r-1"]


@pytest.mark.parametrize("gone", ["graphs", "segments"])
async def test_what_is_not_there_keeps_nothing_else_from_being_searched(
    tmp_path: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        (first,) = (world.state / gone).iterdir()
        leave_run(tmp_path / "two", [record("r-3", "another refund")])
        await world.follow()
        shutil.rmtree(first)
        world.server = SearchServer(world.state, WordVectors())
        await world.server.refresh()
        left = {"r-3"} if gone == "segments" else {"r-1", "r-2", "r-3"}
        assert set(await world.hits(query="refund", mode="meaning")) == left
        answer = await world.answer(query="refund", mode="words")
        assert answer["skipped"] == (1 if gone == "segments" else 0)


async def test_a_graph_that_cannot_be_opened_now_leaves_the_one_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 2)
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        await world.server.refresh()
        leave_run(tmp_path / "two", [record("r-3", "another refund")])
        await world.follow()
        world.indexer.make_graphs()
        with refused(snapshot, "Graph", OSError(errno.ENOMEM, "")):
            await world.server.refresh()
            found = await world.hits(query="refund", mode="meaning")
            assert sorted(found) == ["r-1", "r-2", "r-3"]
        await world.server.refresh()
        assert sorted(await world.hits(query="refund", mode="meaning")) == ["r-1", "r-2", "r-3"]


async def test_no_file_of_the_index_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 10)
    leave_run(tmp_path / "long", LONG)
    leave_run(tmp_path / "short", FIRST)
    state = tmp_path / ".index"
    async with search_world(tmp_path, state=state) as world:
        await world.follow()
        world.indexer.make_graphs()
        await world.server.refresh()
        await world.answer(query="refund")
        opened, mapped = held_below(state / "segments")
        assert (opened, 0 < mapped <= 6) == ([], True)


@pytest.mark.parametrize("left", [0, 5_000])
@pytest.mark.parametrize("file", ["documents.arrow", "docs.npy"])
async def test_a_file_that_is_cut_under_a_replica_does_not_end_it(
    tmp_path: Path, file: str, left: int
) -> None:
    leave_run(
        tmp_path / "long",
        [
            record(f"r-{n}", f"{n} refund " + " ".join(f"{n}w{i}" for i in range(300)))
            for n in range(40)
        ],
    )
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (segment,) = (world.state / "segments").iterdir()
        assert (segment / file).stat().st_size > SMALL
        leave_run(tmp_path / "short", [record("r-s", "refund")])
        await world.follow()
        os.truncate(segment / file, left)
        answer = await world.answer(query="refund", mode="words")
        assert ([hit["id"] for hit in answer["hits"]], answer["skipped"]) == (["r-s"], 1)
        await world.follow()
        assert (await world.answer(query="refund", mode="words"))["skipped"] == 0


async def test_a_file_that_is_replaced_by_a_shorter_one_in_place_leaves_the_others_answering(
    tmp_path: Path,
) -> None:
    leave_run(
        tmp_path / "long",
        [record(f"r-{n}", "refund", source="s" * 100 + str(n)) for n in range(400)],
    )
    leave_run(tmp_path / "short", [record("r-s", "refund")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (names,) = (
            each
            for each in (world.state / "segments").glob("*/names.json")
            if each.stat().st_size > SMALL
        )
        content = orjson.loads(names.read_bytes())
        names.write_bytes(orjson.dumps({**content, "sources": [""] * len(content["sources"])}))
        answer = await world.answer(query="refund", mode="words")
        assert ([hit["id"] for hit in answer["hits"]], answer["skipped"]) == (["r-s"], 1)


async def test_a_graph_that_is_cut_under_a_replica_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "FEWEST", 10)
    rows = [record(f"r-{n}", f"refund {n}") for n in range(200)]
    leave_run(tmp_path / "one", rows)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        world.indexer.make_graphs()
        await world.server.refresh()
        assert len(await world.hits(query="refund", mode="meaning")) == 10
        os.truncate(world.graph / "vectors.npy", 0)
        assert await world.hits(query="refund", mode="meaning") == []
        assert len(await world.hits(query="refund", mode="words")) == 10


@pytest.mark.parametrize("shape", [(0,), (3,), (20_000,), (5_000, 4), (0, 4)])
def test_an_array_is_read_as_it_was_saved(tmp_path: Path, shape: tuple[int, ...]) -> None:
    saved = np.arange(int(np.prod(shape)), dtype=np.uint32).reshape(shape)
    np.save(tmp_path / "a.npy", saved)
    found = array_of(tmp_path / "a.npy")
    assert found.dtype == saved.dtype
    np.testing.assert_array_equal(found, saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:30],
        lambda data: data.replace(b"(8,)", b"(-8,"),
        lambda data: data.replace(b"(8,)", b"(((("),
        lambda data: data.replace(b"<u4", b"|O8"),
        lambda data: data.replace(b"False", b"True "),
    ],
)
def test_what_is_no_array_is_told(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.arange(8, dtype=np.uint32))
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(READ_ERRORS):
        array_of(file)
