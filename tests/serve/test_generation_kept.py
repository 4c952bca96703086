"""What was converted once is kept: for the next process, through kills, damage and full disks."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from serve.generation.kept import kept


class Conversion:
    """Of a file that says `converted`. `full`: the disk is, once something was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.full = False
        self.times = 0
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def get(self) -> str:
        """What a process gets that loads it."""
        return kept(lambda: self.folder, self._convert, self._save, self._read)

    def _convert(self) -> str:
        self.times += 1
        self.begun.set()
        assert self.go_on.wait(60)
        return "converted"

    def _save(self, made: str, where: Path) -> None:
        (where / "weights").write_text(made)
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _read(self, where: Path) -> str:
        text = (where / "weights").read_text()
        if text != "converted":
            raise ValueError("damaged")
        return text


@pytest.fixture
def conversion(tmp_path: Path) -> Conversion:
    return Conversion(tmp_path / "cache" / "model-1")


def _left(conversion: Conversion) -> set[str]:
    return {each.name for each in conversion.folder.parent.iterdir()} - {"model-1.lock"}


def test_it_is_converted_once_and_anybody_may_read_it(conversion: Conversion) -> None:
    assert [conversion.get() for _ in range(3)] == ["converted"] * 3
    assert conversion.times == 1
    assert _left(conversion) == {"model-1"}
    assert conversion.folder.stat().st_mode & 0o777 == 0o755


def test_who_comes_while_it_is_converted_waits_and_reads(conversion: Conversion) -> None:
    conversion.go_on.clear()
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(conversion.get())) for _ in range(3)]
    for each in threads:
        each.start()
    assert conversion.begun.wait(60)
    conversion.go_on.set()
    for each in threads:
        each.join(60)
    assert got == ["converted"] * 3
    assert conversion.times == 1


def test_a_full_disk_costs_the_time_and_a_word(
    conversion: Conversion, caplog: pytest.LogCaptureFixture
) -> None:
    conversion.full = True
    assert conversion.get() == "converted"
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "No space left" in caplog.text
    assert _left(conversion) == set()


def test_what_a_killed_process_left_is_swept_and_other_files_are_not(
    conversion: Conversion,
) -> None:
    for name in ("tmp-model-1-abc", "tmp-model-2-abc"):
        (conversion.folder.parent / name / "whole").mkdir(parents=True)
    assert conversion.get() == "converted"
    assert _left(conversion) == {"model-1", "tmp-model-2-abc"}


@pytest.mark.parametrize("damage", ["conv", None])
def test_a_damaged_folder_is_made_anew(conversion: Conversion, damage: str | None) -> None:
    conversion.get()
    if damage is None:
        (conversion.folder / "weights").unlink()
    else:
        (conversion.folder / "weights").write_text(damage)
    assert [conversion.get() for _ in range(2)] == ["converted"] * 2
    assert conversion.times == 2
    assert _left(conversion) == {"model-1"}


def test_where_nothing_can_be_kept_it_is_converted_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    conversion = Conversion(tmp_path / "file" / "model-1")
    assert conversion.get() == "converted"

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert kept(homeless, lambda: "made", lambda *_: None, lambda _: "read") == "made"


def test_what_cannot_be_converted_is_an_error_and_leaves_nothing(conversion: Conversion) -> None:
    def fail() -> str:
        raise ValueError("no GGUF")

    with pytest.raises(ValueError, match="no GGUF"):
        kept(lambda: conversion.folder, fail, lambda *_: None, lambda _: "read")
    assert _left(conversion) == set()
