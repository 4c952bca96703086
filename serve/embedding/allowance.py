"""Processors and memory that this process may use: the machine's, or less in a container.

Invariant: what the kernel does not tell limits nothing. Limits of a container are those of control
groups, version 2: of the process's own group and of all above it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

GROUPS = Path("/sys/fs/cgroup")
"""Where the kernel shows the control groups that this process sees."""
OWN_GROUP = Path("/proc/self/cgroup")
"""Which of them is its own: the line `0::PATH`."""


def cores() -> int:
    """Processors that this process may use; a part of one counts as one."""
    number = len(os.sched_getaffinity(0))
    for group in _groups():
        quota, _, period = _read(group / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            number = min(number, max(1, math.ceil(int(quota) / int(period))))
    return number


def memory_use() -> float:
    """The share of the memory that is in use: of the machine's, or of its container's where that is
    nearer to its end. What the kernel can drop (pages of files) counts as free."""
    share = float(psutil.virtual_memory().percent) / 100
    for group in _groups():
        most, used = _read(group / "memory.max"), _read(group / "memory.current")
        if most.isdigit() and used.isdigit() and int(most):
            share = max(share, (int(used) - _droppable(group)) / int(most))
    return share


def _droppable(group: Path) -> int:
    for line in _read(group / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdigit():
            return int(value)
    return 0


def _groups() -> Iterator[Path]:
    """The process's own group and all above it that can be seen."""
    for line in _read(OWN_GROUP).splitlines():
        if line.startswith("0::/") and ".." not in line:
            own = GROUPS / line.removeprefix("0::/")
            yield own
            while own != GROUPS:
                own = own.parent
                yield own


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
