"""Processes of a command and the memory they hold together (Linux, from /proc).

The proportional set size counts a page shared by n processes as a n-th for each, so the sum over
a tree of processes is what the tree holds.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_PROC = Path("/proc")
_EVERY_SECONDS = 1.0


def _parents() -> dict[int, int]:
    """Every process that has not ended, and its parent."""
    parents: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            # A process may end while it is looked at.
            with suppress(OSError, ValueError):
                # The name in parentheses may hold spaces; after it come state and parent.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(folder.name)] = int(fields[1])
    return parents


def alive(pids: set[int]) -> set[int]:
    """Those of `pids` that have not ended."""
    return pids & _parents().keys()


def process_tree(root: int) -> set[int]:
    """The process `root` and all that descend from it now; empty if it is gone."""
    parents = _parents()
    tree = {root} & parents.keys()
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in tree}
        grown = not children <= tree
        tree |= children
    return tree


def pss_bytes(pids: set[int]) -> int:
    """Their proportional set sizes together, bytes; those that are gone count nothing."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


class Watch:
    """A context manager that samples the tree of `root` every second.

    `peak`: the most bytes it held; `seen`: every process that was in it.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak = 0
        self.seen: set[int] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Take one sample."""
        tree = process_tree(self._root)
        self.seen |= tree
        self.peak = max(self.peak, pss_bytes(tree))

    def _sample(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            self.look()
