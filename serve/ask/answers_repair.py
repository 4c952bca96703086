"""A store that survives damage of its file: the damaged one is set aside, a new one takes over.

Invariant: a damaged file is renamed, never deleted, overwritten or written to; it is set aside only
after a fresh look at it failed too, and only if it is still the one that is damaged, so that two
runs on one store set it aside once.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import orjson

from serve.ask.answers import Answers, Pruned
from serve.ask.answers_file import (
    DamagedStore,
    alone,
    is_damage,
    open_alone,
)
from serve.ask.answers_salvage import salvage

MAX_SET_ASIDE = 3
"""By one process: a disk on which each new store is damaged too is not helped by a fourth."""
DAMAGE = "damaged/"
"""Begins the names under which the store keeps what was set aside."""

_T = TypeVar("_T")
_SIDES = ("-wal", "-shm", "")
"""What belongs to a file of SQLite; itself last: whoever opens the name meanwhile finds it whole or
not at all."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged store. `copy`: the name it has now, beside the store; `why`: SQLite's words; `at`:
    when it was set aside, seconds since the epoch; `salvaged`: answers taken over from it; `whole`:
    whether all of it could be read."""

    copy: str
    why: str
    at: float
    salvaged: int = 0
    whole: bool = False


class LastingAnswers:
    """The store at a path, whatever happens to its file. Use it from one thread."""

    def __init__(self, path: Path) -> None:
        """Open or create the store. Raises StoreError if the file is another program's or of a
        newer version, sqlite3.Error where it is locked or the disk full."""
        self.path = path
        self._answers: Answers | None = None
        self._file: tuple[int, int] | None = None
        self._set_aside = 0
        self._do(lambda answers: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; what was put is kept."""
        if self._answers is not None:
            self._answers.close()
            self._answers = None

    def get_many(self, keys: Sequence[bytes], since: float | None = None) -> dict[bytes, bytes]:
        """See `Answers.get_many`."""
        return self._do(lambda answers: answers.get_many(keys, since))

    def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        """See `Answers.put_many`."""
        self._do(lambda answers: answers.put_many(items, replace))

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        """See `Answers.learned`."""
        return self._do(lambda answers: answers.learned(name, since))

    def keep_learned(self, name: str, value: bytes) -> None:
        """See `Answers.keep_learned`."""
        self._do(lambda answers: answers.keep_learned(name, value))

    def prune(self, before: float) -> Pruned:
        """See `Answers.prune`."""
        return self._do(lambda answers: answers.prune(before))

    def damages(self) -> list[Damage]:
        """What was set aside, by this or an earlier run, the oldest first."""
        return self._do(read_damages)

    def _do(self, work: Callable[[Answers], _T]) -> _T:
        """Do `work` on the store; after damage again with a connection that sees the file as it is
        now, and if that one finds it too with a new store."""
        if self._file != _file_at(self.path):
            # Another run has set it aside, or the user has moved it.
            self.close()
        with ExitStack() as broken:
            while True:
                fresh = self._answers is None
                try:
                    return work(self._opened())
                except (sqlite3.Error, DamagedStore) as error:
                    if not is_damage(error, fresh):
                        raise
                    if self._answers is not None:
                        # Closed last: SQLite would write its journal into a file that still has
                        # its name.
                        broken.callback(self._answers.close)
                        self._answers = None
                    if fresh:
                        self._replace(error)

    def _replace(self, error: Exception) -> None:
        if self._set_aside >= MAX_SET_ASIDE:
            raise error
        self._set_aside += replace_damaged(self.path, self._file, str(error))

    def _opened(self) -> Answers:
        if self._answers is None:
            self._file = _file_at(self.path)
            self._answers = Answers(self.path)
            self._file = self._file or _file_at(self.path)
        return self._answers


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file has the name now: renaming another one there changes it."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def read_damages(answers: Answers) -> list[Damage]:
    """What was set aside as the store knows it."""
    query = "SELECT value FROM learned WHERE name >= ? AND name < ? ORDER BY name"
    damages = []
    for (value,) in answers.connection.execute(query, (DAMAGE, DAMAGE + "\U0010ffff")):
        with suppress(orjson.JSONDecodeError, TypeError):
            damages.append(Damage(**orjson.loads(value)))
    return damages


def files_set_aside(path: Path) -> list[Path]:
    """Every file beside the store at `path` that is, or belongs to, a damaged one set aside."""
    if not path.parent.is_dir():
        return []
    begin = f"{path.name}.damaged-"
    return sorted(file for file in path.parent.iterdir() if file.name.startswith(begin))


def copies_beside(path: Path) -> list[Path]:
    """The same, without the journals that belong to them."""
    return [file for file in files_set_aside(path) if not file.name.endswith(("-wal", "-shm"))]


def replace_damaged(path: Path, file: tuple[int, int] | None, why: str) -> bool:
    """Set the damaged store at `path` aside and open a new one with what can still be read; whether
    it was done: not where the name has another `file` by now. Raises OSError, sqlite3.Error where
    that cannot be done; then the damaged one lies beside, whole."""
    with alone(path):
        if _file_at(path) != file:
            return False
        now = time.time()
        copy = _set_aside(path, now)
        with closing(open_alone(path)) as connection:
            salvaged, whole = salvage(copy, connection)
            damage = Damage(copy.name, why, now, salvaged, whole)
            row = (DAMAGE + copy.name, orjson.dumps(asdict(damage)), int(now))
            connection.execute("REPLACE INTO learned VALUES (?, ?, ?)", row)
    return True


def _set_aside(path: Path, now: float) -> Path:
    stem = f"{path.name}.damaged-{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}"
    names = (stem if n == 1 else f"{stem}-{n}" for n in count(1))
    copy = next(
        path.with_name(name)
        for name in names
        if not any(path.with_name(name + side).exists() for side in _SIDES)
    )
    for side in _SIDES:
        with suppress(FileNotFoundError):
            os.rename(path.with_name(path.name + side), copy.with_name(copy.name + side))
    return copy
