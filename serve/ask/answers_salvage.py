"""What can still be read of a damaged store, into a new one.

Invariant: the damaged file is only read; what is taken over was whole: a key of the right length, a
time that is past, a value that is JSON. Memory is flat, and the time is bounded.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson

from serve.ask.answers_file import open_alone, open_readonly, transaction

SALVAGE_SECONDS = 30.0
"""Spent on it (some million answers); meanwhile every run that uses the store waits."""
MENDED_BYTES = 1 << 30
"""Of a store whose beginning is lost a second file has to be made: not of a larger one."""
_AT_ONCE = 1_000
_KEY_BYTES = 32
_HEADER = 100
"""Bytes of SQLite's header; the rest of its page says where the tables begin."""
_PAGE = 4096


def salvage(copy: Path, into: sqlite3.Connection) -> tuple[int, bool]:
    """Take over what is whole in the damaged store `copy`; how many answers, and whether all of it
    was read."""
    size = copy.stat().st_size
    if size == 0:
        return 0, False  # SQLite would delete its journal.
    until = time.monotonic() + SALVAGE_SECONDS
    whole = _take_over(copy, into, until)
    if not (found := _count(into)) and _PAGE < size <= MENDED_BYTES:
        for lost in (_HEADER, _PAGE):
            with suppress(OSError), _mended(copy, lost) as mended:
                _take_over(mended, into, until)
            if found := _count(into):
                break
        whole = False
    return found, whole


def _count(into: sqlite3.Connection) -> int:
    return int(into.execute("SELECT count(*) FROM answers").fetchone()[0])


def _take_over(copy: Path, into: sqlite3.Connection, until: float) -> bool:
    """Take over what is whole in `copy`; whether all of it was read."""
    reading = _Reading()
    with suppress(sqlite3.Error), closing(open_readonly(copy)) as source:
        # With it, a file that was cut short is read as far as it goes.
        source.execute("PRAGMA writable_schema=ON")
        source.execute("PRAGMA cell_size_check=ON")
        source.text_factory = bytes
        learned = _whole(_until_damage(source, "SELECT * FROM learned"), names=True)
        put = "INSERT OR IGNORE INTO learned VALUES (CAST(? AS TEXT), ?, ?)"
        with transaction(into):
            into.executemany(put, learned)
        rows = _whole(_rows(source, reading))
        while some := list(islice(rows, _AT_ONCE)):
            with transaction(into):
                into.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", some)
            if time.monotonic() > until:
                return False
        return reading.ended
    return False


@dataclass(slots=True)
class _Reading:
    """`ended`: every row was read."""

    ended: bool = False


_Row = tuple[object, ...]


def _rows(source: sqlite3.Connection, reading: _Reading) -> Iterator[_Row]:
    """The rows of the answers: from the first one on as far as it goes; then from the last one
    back; then those between by the index of their ages, each by itself."""
    columns = "SELECT key, value, stored_at FROM answers"
    try:
        yield from source.execute(columns)
    except sqlite3.Error:
        yield from _until_damage(source, f"{columns} ORDER BY rowid DESC")
        index = "SELECT rowid FROM answers INDEXED BY answers_by_age ORDER BY stored_at"
        for row in _until_damage(source, index):
            yield from _until_damage(source, f"{columns} WHERE rowid = ?", *row)
    else:
        reading.ended = True


def _until_damage(source: sqlite3.Connection, query: str, *values: object) -> Iterator[_Row]:
    with suppress(sqlite3.Error):
        yield from source.execute(query, values)


def _whole(rows: Iterator[_Row], names: bool = False) -> Iterator[tuple[bytes, bytes, int]]:
    """Those rows that cannot be the debris of others. `names`: under a name, not a key."""
    now = time.time()
    for key, value, stored_at in rows:
        if (
            isinstance(key, bytes)
            and (names or len(key) == _KEY_BYTES)
            and isinstance(value, bytes)
            and isinstance(stored_at, int)
            and 0 <= stored_at <= now + 1
            and _is_json(value)
        ):
            yield key, value, stored_at


def _is_json(value: bytes) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


@contextmanager
def _mended(copy: Path, lost: int) -> Iterator[Path]:
    """A second file of the damaged store, its first `lost` bytes as a new store has them. Raises
    OSError where the disk has no room for it."""
    mended = copy.with_name(f".{copy.name}.mended")
    try:
        shutil.copyfile(copy, mended)
        mended.chmod(0o600)
        with mended.open("r+b") as file:
            file.write(_beginning()[:lost])
            # The list of free pages is lost, and the size is what the file has: a header whose two
            # counts of changes differ does not know it.
            for at, data in ((24, 1), (28, 0), (32, 0), (36, 0), (92, 0)):
                file.seek(at)
                file.write(data.to_bytes(4, "big"))
        yield mended
    finally:
        for side in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(mended.with_name(mended.name + side))


def _beginning() -> bytes:
    """The first page of a new store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        open_alone(path).close()
        return path.read_bytes()[:_PAGE]
