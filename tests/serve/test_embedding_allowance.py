"""What a container leaves of the machine, as the kernel's files tell it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from serve.embedding import allowance
from serve.embedding.allowance import cores, memory_use


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those of a machine of 8 processors, half of whose memory is in use; the process is in
    `pod/box`."""
    own = tmp_path / "own"
    own.write_text("4:memory:/elsewhere\n0::/pod/box\n")
    folder = tmp_path / "groups"
    (folder / "pod" / "box").mkdir(parents=True)
    monkeypatch.setattr(allowance, "OWN_GROUP", own)
    monkeypatch.setattr(allowance, "GROUPS", folder)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(percent=50.0))
    return folder


def test_without_limits_it_is_the_machine(groups: Path) -> None:
    assert (cores(), memory_use()) == (8, 0.5)
    for name in ("cpu.max", "memory.max", "memory.current"):
        (groups / "pod" / "box" / name).write_text("max 100000" if name == "cpu.max" else "max\n")
    assert (cores(), memory_use()) == (8, 0.5)


@pytest.mark.parametrize(
    ("quota", "number"), [("200000", 2), ("150000", 2), ("5000", 1), ("99999999", 8)]
)
@pytest.mark.parametrize("group", ["pod/box", "pod", "."])
def test_a_containers_share_of_the_processors(
    groups: Path, group: str, quota: str, number: int
) -> None:
    (groups / group / "cpu.max").write_text(f"{quota} 100000\n")
    assert cores() == number


def test_a_containers_memory_without_what_can_be_dropped(groups: Path) -> None:
    box = groups / "pod" / "box"
    (box / "memory.max").write_text("1000\n")
    (box / "memory.current").write_text("900\n")
    assert memory_use() == pytest.approx(0.9)
    (box / "memory.stat").write_text("anon 650\ninactive_file 250\nfile 10\n")
    assert memory_use() == pytest.approx(0.65)
    (box / "memory.current").write_text("300\n")
    assert memory_use() == 0.5


def test_where_the_kernel_tells_nothing(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "OWN_GROUP", groups / "no such file")
    assert (cores(), memory_use()) == (8, 0.5)
