"""Vectors that were once made stay, whatever fails beside them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serve.search import missing
from serve.search.embedding import Encoded
from serve.search.missing import Missing
from serve.search.space import space_of
from serve.search.vectors import Kind, folder_of, parts_in, read_parts, write_part
from tests.serve.search_world import leave_run, record, search_world, vector_of

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowMemoryError("malloc of size 64 failed"),
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError("Couldn't deserialize thrift: std::bad_alloc"),
    ],
)
async def test_vectors_that_cannot_be_read_now_are_kept(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        with monkeypatch.context() as patched:
            patched.setattr(pq, "read_table", refuse)
            world.indexer.look()
            await world.server.refresh()
            searched = (await world.answer(query="refund", mode="words"))["searched"]
            assert searched["embedded"] == 0
        await world.follow()
        assert world.vectors.asked == []
        assert (await world.answer(query="refund", mode="words"))["searched"]["embedded"] == 2


async def test_a_run_that_no_memory_was_left_for_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        with monkeypatch.context() as patched:
            patched.setattr(pq, "read_table", refuse)
            world.indexer.look()
        await world.follow()
        assert await world.hits(query="refund", mode="words") == ["r-1"]


async def test_a_damaged_segment_whose_folder_cannot_be_removed_leaves_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where a file that a replica has open stays in its folder under another name."""
    rmtree = shutil.rmtree

    def busy(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")

    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (made,) = (world.state / "segments").iterdir()
        (made / "docs.npy").unlink()
        monkeypatch.setattr(shutil, "rmtree", busy)
        asked = len(world.vectors.asked)
        await world.follow()
        assert len(world.vectors.asked) == asked
        assert await world.hits(query="refund", mode="words") == ["r-1"]
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        assert [each.name for each in (world.state / "segments").iterdir()] == [made.name]


@pytest.mark.parametrize("step", [1, 2])
async def test_a_writer_that_is_stopped_while_it_makes_a_segment_anew_leaves_its_vectors(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, steps = os.rename, 0

    def stopped(*paths: Path) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            raise KeyboardInterrupt
        rename(*paths)

    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (made,) = (world.state / "segments").iterdir()
        (made / "docs.npy").unlink()
        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", stopped)
            with pytest.raises(KeyboardInterrupt):
                world.indexer.look()
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert world.vectors.asked == []
        assert await world.hits(query="refund", mode="words") == ["r-1"]


def test_a_model_whose_space_cannot_be_read_now_gets_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    known = space_of(tmp_path, "model", vector_of("probe"))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            space_of(tmp_path, "model", vector_of("probe"))
    assert space_of(tmp_path, "model", vector_of("probe")) == known


def kept(tmp_path: Path) -> tuple[Missing, Path]:
    """What is missing of a segment of three texts, of which two have vectors in files of their
    own, and the folder of those."""
    digests = np.array([bytes([n]) * 16 for n in range(3)], dtype=Kind)
    folder = folder_of(tmp_path / "segments" / "one", "space")
    for group in range(2):
        groups = np.array([group], dtype=np.int32)
        write_part(folder, groups, digests[groups], np.full((1, 2), group, dtype=np.float16))
    return Missing(tmp_path / "segments" / "one", "space", digests), folder


def test_vectors_of_a_merge_that_was_broken_off_are_merged_again(tmp_path: Path) -> None:
    before, folder = kept(tmp_path)
    names = parts_in(folder)
    small = {name: (folder / name).read_bytes() for name in names}
    before.merge()
    for name, content in small.items():  # they had not been removed yet
        (folder / name).write_bytes(content)
    before.merge()
    part = read_parts(folder, parts_in(folder), 3)
    assert part is not None
    assert part.groups.tolist() == [0, 1]


def test_vectors_that_are_damaged_when_they_are_merged_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "TOGETHER", 2)
    some, folder = kept(tmp_path)
    assert some.count == 1
    (folder / parts_in(folder)[0]).write_bytes(b"PAR1")
    some.merge()
    assert some.count == 2


async def test_a_look_while_texts_are_embedded_has_none_embedded_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        leave_run(tmp_path / "two", [FIRST[0], record("r-3", "another parcel")])
        world.indexer.look()
        encode, asked = world.vectors.encode, len(world.vectors.asked)

        async def looked(texts: Sequence[str], seconds: float) -> Encoded:
            world.indexer.look()
            return await encode(texts, seconds)

        monkeypatch.setattr(world.vectors, "encode", looked)
        for _ in range(3):
            await world.indexer.embed(10)
        assert world.vectors.asked[asked:] == ["another parcel"]
        assert world.indexer.behind == 0
