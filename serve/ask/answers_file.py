"""The file of a store of answers: what it is, how it is made, brought up to date and opened.

Invariant: a file that is not ours, or that a newer version wrote, is never written to; what is
wrong with a file is one of these, and a full disk or a locked file is none of them.

    StoreError         says what is the matter; plain arguments, so that it survives pickling
     +- ForeignFile     another program's file, or a user's own
     +- NewerStore      a store that a newer version wrote
     `- DamagedStore    a store of ours that can no longer be read
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

APPLICATION_ID = 0x66757061
"""In the header of each store ("fupa"), as SQLite provides for it."""
VERSION = 1
"""Of what is in the file. 0, without an application id: one table of answers, clustered by key."""
_MOST_VERSION = 1_000
"""More is no version but damage."""
BUSY_SECONDS = 30.0
"""How long a writer waits for another run's transaction (each takes milliseconds)."""
CACHE_KIB = 16_000
"""Pages kept in memory. The keys of 100,000 answers are 4 MB, read and written in random order:
with SQLite's own 2 MB storing them takes half as long again."""

_SCHEMA = (
    # Not clustered by key: keys are random, so each batch would rewrite as many pages as it has
    # answers (measured: four times as slow).
    "CREATE TABLE answers (key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL,"
    " stored_at INTEGER NOT NULL)",
    "CREATE INDEX answers_by_age ON answers (stored_at)",
    "CREATE TABLE IF NOT EXISTS learned (name TEXT PRIMARY KEY, value BLOB NOT NULL,"
    " stored_at INTEGER NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_TAKE_OVER = (
    "ALTER TABLE answers RENAME TO before",
    *_SCHEMA,
    "INSERT INTO answers SELECT key, value, stored_at FROM before",
    "DROP TABLE before",
)
_COLUMNS = ["key", "value", "stored_at"]
_LOOKED_AT = 1 << 20
"""Bytes of a file that SQLite cannot read in which the marks of a store are looked for."""
_ROW = re.compile(rb"[\x04-\x06]\x4c[\x80-\xff]{0,2}[\x00-\x7f]\x04.{32}\{", re.DOTALL)
"""A row of answers as SQLite writes it: a blob of 32 bytes, one of some length, an integer of 4
bytes; then the key and the first byte of an object."""
_ROWS = 3
"""So many rows are no coincidence: random bytes hold one in 250 files."""

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNSURE = frozenset({sqlite3.SQLITE_ERROR})
"""Our statements are right for our tables: if one fails so, the tables are no longer ours, unless
they have just been looked at."""


class StoreError(Exception):
    """Base of what can be wrong with the file of a store."""


class ForeignFile(StoreError):
    """The file is no store of answers. It was not changed."""


class NewerStore(StoreError):
    """A newer version of this program wrote the store. It was not changed."""


class DamagedStore(StoreError):
    """The file is a store of answers, and can no longer be read."""


def is_damage(error: Exception, fresh: bool = False) -> bool:
    """Whether `error` says that the file is damaged: not that it is locked or the disk full.
    `fresh`: the file was just opened and looked at."""
    if isinstance(error, sqlite3.Error):
        # The result code of SQLite without its details; errors that are none of SQLite's have none.
        code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
        return code in (_DAMAGE if fresh else _DAMAGE | _UNSURE)
    return isinstance(error, DamagedStore)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Only one process at a time opens, makes or sets aside the store at `path`. The lock is on the
    folder: a lock on the file itself would be lost with the file, and a second descriptor of it
    would, once closed, take SQLite's own locks away."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network file systems lock no folders.
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def open_store(path: Path) -> sqlite3.Connection:
    """The store at `path`, made where there is none, brought up to date where it is an old one.

    Raises StoreError for what is no such store, sqlite3.Error where it is locked or the disk full,
    OSError where no file can be.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with alone(path):
        return open_alone(path)


def open_alone(path: Path) -> sqlite3.Connection:
    """See `open_store`, for one who holds `alone`."""
    if not path.exists():
        path.touch(mode=0o600)
    found = _version(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, found)
    except sqlite3.Error as error:
        connection.close()
        if is_damage(error):
            raise DamagedStore(str(error)) from error
        raise
    return connection


def _prepare(connection: sqlite3.Connection, found: int | None) -> None:
    # In WAL mode a NORMAL commit survives the end of the process without an fsync; only a power
    # cut can take the last ones. What is forgotten is overwritten.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA cache_size={-CACHE_KIB}")
    # A damaged page is noticed when it is read, not when something strange is found in it.
    connection.execute("PRAGMA cell_size_check=ON")
    connection.text_factory = bytes
    if found != VERSION:
        with transaction(connection):
            for statement in _SCHEMA if found is None else _TAKE_OVER:
                connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block's changes, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended the transaction already; what cannot be undone is not in the file.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def open_readonly(path: Path) -> sqlite3.Connection:
    """The file as it is: nothing is written, not even what its journal holds."""
    # Without a journal the file is all there is, and none needs to be made to read it.
    mode = "mode=ro" if _has_journal(path) else "immutable=1"
    return sqlite3.connect(
        f"file:{quote(str(path))}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )


def _has_journal(path: Path) -> bool:
    journal = path.with_name(f"{path.name}-wal")
    return journal.exists() and journal.stat().st_size > 0


def _version(path: Path) -> int | None:
    """The version of the store; None where nothing is in the file yet. Raises StoreError."""
    size = path.stat().st_size
    if size == 0 and _has_journal(path):
        raise DamagedStore("the file is empty, but its journal is not")
    if size == 0:
        return None
    try:
        with closing(open_readonly(path)) as connection:
            version = _version_of(connection)
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            if version == VERSION:
                _look(connection)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        if has_marks(path):
            raise DamagedStore(str(error)) from error
        raise ForeignFile(str(error)) from error
    if size < page:
        # SQLite takes a file of one byte for an empty one.
        raise ForeignFile("it is too short for a database")
    if size % page and not _has_journal(path):
        raise DamagedStore("its last page is not whole")
    return version


def _version_of(connection: sqlite3.Connection) -> int | None:
    application, version, things = (
        int(connection.execute(query).fetchone()[0])
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if application == APPLICATION_ID and VERSION < version <= _MOST_VERSION:
        raise NewerStore(f"it has version {version}; this program knows up to {VERSION}")
    ours = [row[1] for row in connection.execute("PRAGMA table_info(answers)")] == _COLUMNS
    if (application, version) == (0, 0) and (ours or not things):
        return 0 if ours else None
    if (application, version) == (APPLICATION_ID, VERSION) and ours:
        return VERSION
    if application == APPLICATION_ID or ours:
        raise DamagedStore(f"its header says version {version} of {application:#x}")
    raise ForeignFile("it is a database of another program")


def _look(connection: sqlite3.Connection) -> None:
    """A cheap look at both ends of table and index; a whole one would read the whole file."""
    for order in ("key", "key DESC", "stored_at", "stored_at DESC", "rowid", "rowid DESC"):
        connection.execute(f"SELECT value FROM answers ORDER BY {order} LIMIT 1").fetchone()  # noqa: S608
    connection.execute("SELECT value FROM learned").fetchone()


def has_marks(path: Path) -> bool:
    """Whether a file that SQLite cannot read was a store of answers: by its id where the header
    keeps it, its table, or its rows. A text file never is one."""
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
    if b"\0" not in head:
        return False
    marked = head[68:72] == APPLICATION_ID.to_bytes(4, "big")
    return (
        marked
        or re.search(rb"CREATE TABLE answers ?\(\s*key BLOB PRIMARY KEY", head) is not None
        or len(_ROW.findall(head)) >= _ROWS
    )
