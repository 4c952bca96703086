"""index.json: what the index holds, told by who makes it to who answers from it.

Invariant: it appears whole; everything it names was there before it, and stays until a later one
that does not name it has been there for a while.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from serve.search.runs import RunFolder
from serve.search.space import Space

FILE = "index.json"
FORMAT = 4
"""Raised where an index or segment of before cannot be read any more: it is made anew."""
TELL_SECONDS = 1.0
"""After an index was published the next may wait so long: it is as long as there are many runs, and
replicas look for it once a second."""


@dataclass(frozen=True, slots=True)
class IndexedRun:
    """A run that is searched. `segment`: the folder of its index; `seal`: of that, which differs
    where it was made anew; `parts`: the files of vectors it has; `texts`, `embedded`: how many
    different texts it has, and of how many the vector is there; `report`: what is shown of it in a
    list."""

    run: RunFolder
    segment: str
    seal: str
    parts: tuple[str, ...]
    texts: int
    embedded: int
    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A run that is not searched, and why."""

    run: RunFolder
    reason: str


@dataclass(frozen=True, slots=True)
class SavedGraph:
    """The graph of one owner's vectors, in a folder (graphs.py), over the vectors of `segments`."""

    owner: str
    folder: str
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """What there is. `space`: whose vectors they are."""

    space: Space
    runs: tuple[IndexedRun, ...] = ()
    skipped: tuple[SkippedRun, ...] = ()
    graphs: tuple[SavedGraph, ...] = ()

    @property
    def folders(self) -> list[RunFolder]:
        """Of the runs that are searched, and of those that are skipped."""
        return [run.run for run in self.runs] + [skipped.run for skipped in self.skipped]

    def write(self, state: Path) -> None:
        """Publish it."""
        state.mkdir(parents=True, exist_ok=True)
        hidden = state / f".{FILE}.{uuid.uuid4().hex[:8]}.part"
        hidden.write_bytes(orjson.dumps({"format": FORMAT, **asdict(self)}))
        os.replace(hidden, state / FILE)

    @classmethod
    def read(cls, state: Path) -> Catalog | None:
        """The one that was published last; None where there is none, or one of another format.
        Raises OSError."""
        try:
            data = orjson.loads((state / FILE).read_bytes())
            if data.pop("format") != FORMAT:
                return None
            return cls(
                Space(data["space"]["model"], tuple(data["space"]["probe"])),
                tuple(_indexed(each) for each in data["runs"]),
                tuple(
                    SkippedRun(RunFolder(**each["run"]), each["reason"]) for each in data["skipped"]
                ),
                tuple(
                    SavedGraph(each["owner"], each["folder"], tuple(each["segments"]))
                    for each in data["graphs"]
                ),
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None


class Published:
    """index.json in the folder `state`, for who writes it. `told`: what replicas answer from, from
    the writer before on; None: there is none."""

    def __init__(self, state: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises OSError."""
        self._state = state
        self._mark = self._mark_now()
        self.told = Catalog.read(state)
        self._clock = clock
        self._next_at = clock()

    @property
    def may_wait(self) -> bool:
        """Whether there is one that is as good as new."""
        return self._clock() < self._next_at

    def tell(self, catalog: Catalog) -> None:
        """Publish `catalog`, if it is not what was told, or others changed that. Raises OSError."""
        if catalog != self.told or self._mark is None or self._mark != self._mark_now():
            catalog.write(self._state)
            self.told, self._mark = catalog, self._mark_now()
            self._next_at = self._clock() + TELL_SECONDS

    def _mark_now(self) -> tuple[int, int, int] | None:
        """What differs where others change or replace the file; None: it is not there."""
        try:
            seen = (self._state / FILE).stat()
        except FileNotFoundError:
            return None
        return seen.st_ino, seen.st_mtime_ns, seen.st_size


def _indexed(each: dict[str, Any]) -> IndexedRun:
    return IndexedRun(**{**each, "run": RunFolder(**each["run"]), "parts": tuple(each["parts"])})
