"""Processes of a command and the memory they hold together (Linux, from /proc).

The proportional set size counts a page shared by n processes as a n-th for each, so the sum over
a tree of processes is what the tree holds. Ray's object store is shared memory of a fixed size,
told apart from what the processes hold themselves.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_PROC = Path("/proc")
_EVERY_SECONDS = 1.0


class Held(NamedTuple):
    """Bytes that a process holds: its `own` memory, and its part of `shared` memory (which in a
    process of Ray is the object store)."""

    own: int
    shared: int


@dataclass(frozen=True, slots=True)
class Look:
    """One sample of a tree of processes, `seconds` after the watch began: what each held, by a name
    that tells what it is."""

    seconds: float
    held: list[tuple[str, Held]]

    @property
    def own(self) -> int:
        """Bytes of the processes without what they share."""
        return sum(held.own for _, held in self.held)

    @property
    def total(self) -> int:
        """Bytes of the processes, what they share included."""
        return sum(held.own + held.shared for _, held in self.held)


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


def held_by(pid: int) -> Held:
    """What the process holds (proportional set size); nothing if it is gone."""
    parts = {"Pss:": 0, "Pss_Shmem:": 0}
    with suppress(OSError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            name, *value = line.split()
            if name in parts:
                parts[name] = int(value[0]) * 1024
    return Held(parts["Pss:"] - parts["Pss_Shmem:"], parts["Pss_Shmem:"])


def pss_bytes(pids: set[int]) -> int:
    """Their proportional set sizes together, bytes; those that are gone count nothing."""
    return sum(held.own + held.shared for held in map(held_by, pids))


def _name_of(pid: int) -> str:
    """What `ps` shows of a process, shortened: Ray's workers call themselves by what they do."""
    with suppress(OSError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return Path(words[0].decode(errors="replace")).name[:40] or "?"
    return "gone"


class Watch:
    """A context manager that samples the tree of `root` every second.

    `peak`: the most bytes it held; `highest`: the look with the most bytes of its own; `seen`:
    every process that was in it.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._began = time.monotonic()
        self.peak = 0
        self.highest = Look(0.0, [])
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

    def look(self) -> Look:
        """Take one sample."""
        tree = process_tree(self._root)
        self.seen |= tree
        held = [(_name_of(pid), held_by(pid)) for pid in sorted(tree)]
        look = Look(time.monotonic() - self._began, held)
        self.peak = max(self.peak, look.total)
        if look.own > self.highest.own:
            self.highest = look
        return look

    def _sample(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            self.look()
