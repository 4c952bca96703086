"""A disk that fills while results are written, on a real small disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from job.storage.place import Place
from job.write import write_atomic
from tests.command import fupan, read_json
from tests.job.test_run_again import write_logs


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_write_that_finds_no_room_names_its_file_and_leaves_no_trace(disk: Path) -> None:
    path = disk / "ledger.json"
    with pytest.raises(OSError, match=f"No space left on device: {path}"):
        write_atomic(Place.of(str(path)), b"x" * (1 << 20))
    assert list(disk.iterdir()) == []


@pytest.mark.ray
def test_a_run_on_a_full_disk_says_so_and_the_same_command_goes_on(
    tmp_path: Path, disk: Path
) -> None:
    write_logs(tmp_path / "logs", 2, 5000)
    words: list[str | Path] = [
        *("run", tmp_path / "logs", "--out", disk / "retro", "--provider", "extractive"),
        *("--answers", tmp_path / "answers.db", "--timezone", "UTC"),
    ]
    full = fupan(*words)
    assert full.code == 1
    assert full.err.count("the disk is full: No space left on device: ") == 1, full.err
    assert "the same command goes on from here" in full.err
    assert not (disk / "retro" / "report.html").exists()
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
    again = fupan(*words)
    assert again.code == 0, again.err
    ledger = read_json(disk / "retro" / "ledger.json")
    assert ledger["read"] == ledger["answered"] == 10_000
