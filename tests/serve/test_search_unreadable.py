"""Files of the index that stay unreadable, or cannot be removed: nothing else waits for them."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from serve.search import missing, vectors
from serve.search.segment import Segment
from tests.serve.search_world import World, leave_run, record, search_world

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


def segment_of(world: World) -> Path:
    (segment,) = (world.state / "segments").iterdir()
    return segment


def parts_of(world: World) -> list[Path]:
    return list(world.state.glob("vectors/*/*/*.parquet"))


async def test_words_are_found_while_a_file_of_vectors_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leave_run(tmp_path / "one", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    leave_run(tmp_path / "two", [record("r-3", "another refund")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        (part,) = parts_of(world)
        with monkeypatch.context() as patched:
            content = vectors._content

            def broken(file: Path) -> str:
                if file == part:
                    raise OSError(errno.EIO, "Input/output error", str(file))
                return content(file)

            patched.setattr(vectors, "_content", broken)
            world.indexer.look()
            world.indexer.look()
            assert await world.indexer.embed(10)
            with pytest.raises(OSError, match="Input/output"):
                await world.indexer.embed(10)
            await world.server.refresh()
            assert set(await world.hits(query="refund", mode="words")) == {"r-1", "r-3"}
            assert await world.hits(query="refund", mode="meaning") == ["r-3"]
            assert (await world.reports())["skipped"] == []
            assert caplog.text.count("by its words alone") == 1
        assert part.exists()
        await world.follow()
        assert set(await world.hits(query="refund", mode="meaning")) == {"r-1", "r-2", "r-3"}
        assert world.vectors.asked == ["another refund", "refund"]


@pytest.mark.parametrize("kind", ["folder", "loop", "no folder"])
async def test_a_segment_that_no_waiting_mends_is_made_anew(tmp_path: Path, kind: str) -> None:
    leave_run(tmp_path / "retro" / "one", FIRST)
    state = tmp_path / "index"
    async with search_world(tmp_path / "retro", state=state) as world:
        await world.follow()
        segment = segment_of(world)
    (state / "index.json").unlink()
    if kind == "no folder":
        shutil.rmtree(segment)
        segment.touch()
    else:
        (segment / "names.json").unlink()
        if kind == "folder":
            (segment / "names.json").mkdir()
        else:
            (segment / "names.json").symlink_to("names.json")
    async with search_world(tmp_path / "retro", state=state) as world:
        await world.follow()
        assert set(await world.hits(query="refund", mode="meaning")) == {"r-1", "r-2"}
        assert world.vectors.asked == ["refund"]


async def test_files_of_vectors_that_cannot_be_removed_hold_up_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "PORTION", 1)
    monkeypatch.setattr(missing, "TOGETHER", 2)
    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self.suffix == ".parquet":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    texts = ["one refund", "two parcels", "three pools", "four"]
    leave_run(tmp_path / "a", [record(f"r-{n}", text) for n, text in enumerate(texts)])
    leave_run(tmp_path / "b", [record("r-b", "another refund")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        for _ in range(10):
            await world.indexer.embed(10)
            world.indexer.look()
        assert not await world.indexer.embed(10)
        await world.server.refresh()
        searched = (await world.answer(query="refund", mode="meaning"))["searched"]
        assert searched["embedded"] == searched["texts"] == 5
        assert sorted(world.vectors.asked) == sorted([*texts, "another refund", "refund"])
        # Each portion, and what was made of two at a time.
        assert len(parts_of(world)) <= 1 + 2 * len(texts)


async def test_what_is_damaged_is_told_once_while_something_else_cannot_be_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_run(tmp_path / "one", FIRST)
    leave_run(tmp_path / "two", [record("r-3", "another refund")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        damaged, waiting = (world.state / "segments").iterdir()
        (damaged / "names.json").write_text("{")
        open_ = Segment.open

        def opened(folder: Path) -> Segment:
            if folder == waiting:
                raise OSError(errno.EMFILE, "")
            return open_(folder)

        monkeypatch.setattr(Segment, "open", opened)
        for _ in range(3):
            await world.server.refresh()
        assert caplog.text.count("is damaged") == 1
        assert (await world.reports())["data"] == []
        world.indexer.look()
        monkeypatch.undo()
        await world.server.refresh()
        assert (await world.reports())["skipped"] == []
