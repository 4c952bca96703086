"""What a user can ask of the store of answers: what it holds, to forget some, to hand all out.

Invariant: memory is flat however large the store is, and nobody who stores meanwhile waits longer
than a fraction of a second (but for the rewriting of the file, which says so).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from serve.ask.answers import FORGOTTEN_AT_ONCE, Answers, Pruned, whole_seconds
from serve.ask.answers_file import VERSION, transaction
from serve.ask.answers_redis import AnswersInRedis
from serve.ask.answers_repair import Damage, copies_beside, read_damages

WORTH_REWRITING = 0.1
"""Share of the file that is free, or of the answers that were forgotten, from which on the file is
written anew: forgotten answers lie between those that stay."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A damaged store beside the store. `damage`: what the store knows of it."""

    path: Path
    size: int
    damage: Damage | None


@dataclass(frozen=True, slots=True)
class Lasting:
    """What a Redis does to keep what it holds: whether it writes every change to a file, and what
    it does when its memory is full."""

    appendonly: bool
    policy: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds. `size`: bytes with its journal. `models`: answers by the model that gave
    them, as it calls itself; None: those that do not say. `oldest`, `newest`: seconds since the
    epoch; None without answers. `learned`: bytes and time of each thing kept, by name. `lasting`:
    of a store in Redis, where Redis says so."""

    path: Path | AnswersInRedis
    version: int
    size: int
    answers: int
    models: dict[str | None, int]
    oldest: int | None
    newest: int | None
    learned: dict[str, tuple[int, int]]
    copies: list[Copy]
    lasting: Lasting | None = None


def contents(answers: Answers) -> Contents:
    """What the store holds; reads all of it once."""
    connection = answers.connection
    _add_model_of(connection)
    models = dict(
        connection.execute("SELECT model_of(value) AS m, count(*) FROM answers GROUP BY m")
    )
    oldest, newest = connection.execute(
        "SELECT (SELECT min(stored_at) FROM answers), (SELECT max(stored_at) FROM answers)"
    ).fetchone()
    learned = connection.execute("SELECT name, length(value), stored_at FROM learned ORDER BY name")
    known = {damage.copy: damage for damage in read_damages(answers)}
    return Contents(
        answers.path,
        VERSION,
        _size(answers.path),
        sum(models.values()),
        {None if m is None else m.decode(): n for m, n in sorted(models.items(), key=_by_count)},
        oldest,
        newest,
        {name.decode(): (size, at) for name, size, at in learned},
        [Copy(path, _size(path), known.get(path.name)) for path in copies_beside(answers.path)],
    )


def _by_count(pair: tuple[bytes | None, int]) -> tuple[int, bytes]:
    model, answers = pair
    return -answers, model or b""


def _size(path: Path) -> int:
    size = 0
    for name in (path.name, f"{path.name}-wal"):
        with suppress(FileNotFoundError):
            size += path.with_name(name).stat().st_size
    return size


def model_of(value: object) -> str | None:
    """The model that gave an answer, as it calls itself; None where the answer does not say."""
    try:
        found = orjson.loads(value) if isinstance(value, bytes) else None
    except orjson.JSONDecodeError:
        return None
    model = found.get("model") if isinstance(found, dict) else None
    return model if isinstance(model, str) else None


def _add_model_of(connection: sqlite3.Connection) -> None:
    connection.create_function("model_of", 1, model_of, deterministic=True)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be. `size`: bytes of the store before and after, None where it
    is no file; `full`: the disk had no room to write the file anew, so it is as large as before."""

    answers: int
    learned: int
    size: tuple[int, int] | None
    full: bool = False


def forget(
    answers: Answers, before: float | None, model: str | None, dry_run: bool = False
) -> Forgotten:
    """Forget the answers stored before `before` (seconds since the epoch; None: whenever) that
    `model` gave (None: whichever), and where no model is named what was learned before then."""
    connection = answers.connection
    _add_model_of(connection)
    size = _size(answers.path)
    limit = 2**62 if before is None else whole_seconds(before)
    if dry_run:
        (some,) = connection.execute(
            "SELECT count(*) FROM answers "
            "WHERE stored_at < ? AND (? IS NULL OR model_of(value) = ?)",
            (limit, model, model),
        ).fetchone()
        (learned,) = connection.execute(
            "SELECT count(*) FROM learned WHERE stored_at < ?", (limit,)
        ).fetchone()
        return Forgotten(some, learned if model is None else 0, (size, size))
    if model is None:
        pruned = answers.prune(limit)
    else:
        pruned = Pruned(sum(_forget_of(connection, model, limit)), 0)
    full = _rewrite(connection, pruned.answers)
    return Forgotten(*pruned, (size, _size(answers.path)), full)


def _forget_of(connection: sqlite3.Connection, model: str, limit: int) -> Iterator[int]:
    """Forget answers of a model, a bounded number in a transaction; how many in each."""
    last = -1 << 63
    while rows := connection.execute(
        "SELECT rowid FROM answers NOT INDEXED "
        "WHERE rowid > ? AND stored_at < ? AND model_of(value) = ? ORDER BY rowid LIMIT ?",
        (last, limit, model, FORGOTTEN_AT_ONCE),
    ).fetchall():
        (last,) = rows[-1]
        with transaction(connection):
            connection.executemany("DELETE FROM answers WHERE rowid = ?", rows)
        yield len(rows)


def _rewrite(connection: sqlite3.Connection, forgotten: int) -> bool:
    """Write the file anew where that makes it smaller by much; whether the disk was full."""
    (left,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if max(free / pages, forgotten / max(forgotten + left, 1)) < WORTH_REWRITING:
        return False
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        return True
    return False


def export(answers: Answers) -> Iterator[bytes]:
    """Every answer as a line of JSON, in the order of the keys, as they are at the beginning:
    `key`, `stored_at` (ISO, UTC), `model` and `answer`, or `bytes` (hexadecimal) of one that is no
    JSON."""
    query = (
        "SELECT lower(hex(key)), strftime('%Y-%m-%dT%H:%M:%SZ', stored_at, 'unixepoch'), value "
        "FROM answers ORDER BY key"
    )
    for key, stored_at, value in answers.connection.execute(query):
        yield exported(key.decode(), stored_at.decode(), value)


def exported(key: str, stored_at: str, value: bytes) -> bytes:
    """An answer as a line of JSON, see `export`."""
    line: dict[str, object] = {"key": key, "stored_at": stored_at, "model": model_of(value)}
    try:
        line["answer"] = orjson.loads(value)
    except orjson.JSONDecodeError:
        line["bytes"] = value.hex()
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
