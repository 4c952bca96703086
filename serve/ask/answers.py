"""The store of answers: key -> bytes, paid once, kept; and what runs learned, by name.

Invariant: `put_many` returns only when the answers survive the end of this process, and a stored
answer is never changed: the first one stays. SQLite in WAL mode, one writer at a time; several
runs of one user may hold the same file. Values are JSON bytes, never pickles.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from serve.ask.answers_file import open_store, transaction

KEYS_A_QUERY = 500
"""Below SQLite's historic limit of 999 variables."""
FORGOTTEN_AT_ONCE = 5_000
"""Answers forgotten in one transaction: about a tenth of a second in which nobody else writes."""


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


def whole_seconds(moment: float) -> int:
    """`moment` (seconds since the epoch) as the store writes it: whole, and none before the epoch,
    however long ago it is (-inf too)."""
    return int(max(moment, 0.0))


class Pruned(NamedTuple):
    """How much was forgotten."""

    answers: int
    learned: int


class Answers:
    """One open store. Use it from one thread."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Open or create the store at `path`, readable by its owner only. `clock`: seconds since
        the epoch.

        Raises StoreError if the file is no such store, or a damaged one.
        """
        self.path = path
        self._clock = clock
        self.connection = open_store(path)
        """For `answers_upkeep` alone."""

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
        self.connection.close()

    def __len__(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM answers").fetchone()[0])

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
            found.update(self.connection.execute(query, (*some, start_at)))
        return found

    def put_many(self, items: Iterable[tuple[bytes, bytes]], replace: bool = False) -> None:
        """Store `items` in one transaction. A key that is there already keeps its value unless
        `replace` (`--fresh` asks and stores anew)."""
        now = int(self._clock())
        verb = "REPLACE" if replace else "IGNORE"
        with transaction(self.connection):
            self.connection.executemany(
                f"INSERT OR {verb} INTO answers VALUES (?, ?, ?)",  # noqa: S608
                ((key, value, now) for key, value in items),
            )

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        """What the last run that kept `name` learned; None if none did, or none since `since`
        (seconds since the epoch), if it is given."""
        query = "SELECT value FROM learned WHERE name = ? AND stored_at >= ?"
        row = self.connection.execute(query, (name, whole_seconds(since or 0.0))).fetchone()
        return None if row is None else bytes(row[0])

    def keep_learned(self, name: str, value: bytes) -> None:
        """Keep small JSON between runs under `name`; the latest one stays."""
        row = (name, value, int(self._clock()))
        self.connection.execute("REPLACE INTO learned VALUES (?, ?, ?)", row)

    def prune(self, before: float) -> Pruned:
        """Forget the answers stored, and what was learned and not kept again, before `before`
        (seconds since the epoch)."""
        old = "SELECT rowid FROM answers WHERE stored_at < ? LIMIT ?"
        query = f"DELETE FROM answers WHERE rowid IN ({old})"  # noqa: S608
        limit, answers = whole_seconds(before), 0
        while some := self.connection.execute(query, (limit, FORGOTTEN_AT_ONCE)).rowcount:
            answers += some
        query = "DELETE FROM learned WHERE stored_at < ?"
        return Pruned(answers, self.connection.execute(query, (limit,)).rowcount)
