"""The store of answers: key -> bytes, paid once, kept; and what runs learned, by name.

Invariant: `put_many` returns only when the answers survive the end of this process, and a stored
answer is never changed: the first one stays. SQLite in WAL mode, one writer at a time; several
runs of one user may hold the same file. Values are JSON bytes, never pickles.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

BUSY_SECONDS = 30.0
"""How long a writer waits for another run's transaction (each takes milliseconds)."""
KEYS_A_QUERY = 500
"""Below SQLite's historic limit of 999 variables."""

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    stored_at INTEGER NOT NULL
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS learned (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    stored_at INTEGER NOT NULL
) WITHOUT ROWID
""",
)


def default_path() -> Path:
    """Where a user's answers are kept: `$XDG_DATA_HOME/fupan/answers.db`."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "fupan" / "answers.db"


def answer_key(*parts: str) -> bytes:
    """The key of an answer: 32 bytes over everything that decides it. Each part is hashed with
    its length, so that no two lists of parts run together."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


class Answers:
    """One open store. Use it from one thread."""

    def __init__(self, path: Path) -> None:
        """Open or create the store at `path`, readable by its owner only.

        Raises sqlite3.DatabaseError if the file is no such store.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        self.path = path
        self._connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        # In WAL mode a NORMAL commit survives the end of the process without an fsync; only a
        # power cut can take the last ones.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            self._connection.execute(f"PRAGMA {pragma}")
        for statement in _SCHEMA:
            self._connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; what was put is kept."""
        self._connection.close()

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def get_many(self, keys: Sequence[bytes], since: float | None = None) -> dict[bytes, bytes]:
        """Those of `keys` that are stored, with their values; only what was stored since `since`
        (seconds since the epoch), if it is given."""
        start_at = 0 if since is None else int(since)
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), KEYS_A_QUERY):
            some = keys[start : start + KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            where = f"key IN ({marks}) AND stored_at >= ?"
            query = f"SELECT key, value FROM answers WHERE {where}"  # noqa: S608
            found.update(self._connection.execute(query, (*some, start_at)))
        return found

    def put_many(self, items: Iterable[tuple[bytes, bytes]], replace: bool = False) -> None:
        """Store `items` in one transaction. A key that is there already keeps its value unless
        `replace` (`--fresh` asks and stores anew)."""
        now = int(time.time())
        verb = "REPLACE" if replace else "IGNORE"
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(
                f"INSERT OR {verb} INTO answers VALUES (?, ?, ?)",  # noqa: S608
                [(key, value, now) for key, value in items],
            )
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def learned(self, name: str) -> bytes | None:
        """What the last run that kept `name` learned; None if none did."""
        query = "SELECT value FROM learned WHERE name = ?"
        row = self._connection.execute(query, (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep_learned(self, name: str, value: bytes) -> None:
        """Keep small JSON between runs under `name`; the latest one stays."""
        self._connection.execute(
            "REPLACE INTO learned VALUES (?, ?, ?)", (name, value, int(time.time()))
        )

    def prune(self, before: float) -> int:
        """Forget the answers stored before `before` (seconds since the epoch); how many."""
        cursor = self._connection.execute("DELETE FROM answers WHERE stored_at < ?", (int(before),))
        return cursor.rowcount
