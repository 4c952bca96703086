"""The journal of spend: one row for every attempt, written before its bytes are sent.

Invariant: when `begin` returns, the row survives the end of this process; a row that was never
settled counts in full. SQLite in WAL mode, readable by its owner only; it holds names of sources,
models and amounts, never a text or a key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from serve.ask.answers_file import transaction
from serve.ask.contract import Usage
from serve.ask.settings import Prices
from serve.ask.spend import Call, Ended
from serve.ask.spend_account import Row

FILE = "spend.db"
"""Beside the store of answers."""
KEPT_SECONDS = 30 * 86_400.0
"""A run that spent since then may go on under a cap: what it spent is not forgotten."""
BUSY_SECONDS = 30.0
"""How long a writer waits for another run's transaction (each takes milliseconds)."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts (
    ticket TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    command TEXT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    sources TEXT NOT NULL,
    estimate_in INTEGER NOT NULL,
    max_output INTEGER NOT NULL,
    seconds REAL NOT NULL,
    currency TEXT,
    reserved TEXT,
    cost TEXT,
    tokens_in INTEGER,
    tokens_cached INTEGER,
    tokens_out INTEGER,
    ended TEXT,
    at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS attempts_of_run ON attempts (run);
CREATE TABLE IF NOT EXISTS commands (
    command TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refusals (
    run TEXT NOT NULL,
    model TEXT NOT NULL,
    cap TEXT NOT NULL,
    prices TEXT NOT NULL,
    PRIMARY KEY (run, model)
) WITHOUT ROWID;
"""
_COLUMNS = (
    "ticket, command, model, sources, estimate_in, max_output, seconds, currency, reserved, cost, "
    "tokens_in, tokens_cached, tokens_out, ended, at"
)
_INSERT = (
    f"INSERT OR IGNORE INTO attempts (run, kind, {_COLUMNS}) "  # noqa: S608
    f"VALUES ({', '.join('?' * 17)})"
)


class SpendJournal:
    """One open journal. Use it from one thread."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal at `path`. Raises sqlite3.DatabaseError if it is none."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        self._connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        # As in the store of answers: what was committed survives the process without an fsync.
        try:
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.executescript(_SCHEMA)
        except BaseException:
            self._connection.close()
            raise

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
        """Close the journal; what was written is kept."""
        self._connection.close()

    def check(self) -> None:
        """Raise sqlite3.DatabaseError where the file is damaged."""
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)

    def start(self, run: str, command: str, at: float) -> None:
        """A command of `run` begins, whether or not it will send anything. `at`: seconds since the
        epoch, as everywhere here."""
        row = (command, run, at)
        self._connection.execute("INSERT OR IGNORE INTO commands VALUES (?, ?, ?)", row)

    def knows(self, run: str, command: str) -> bool:
        """Whether a command of `run` began by this journal."""
        found = self._connection.execute(
            "SELECT 1 FROM commands WHERE command = ? AND run = ?", (command, run)
        )
        return found.fetchone() is not None

    def begin(self, run: str, rows: Iterable[Row]) -> None:
        """Attempts of `run` are about to be sent."""
        values = [(run, _kinds(row.call), *_values(row)) for row in rows]
        with transaction(self._connection):
            self._connection.executemany(_INSERT, values)

    def settle(
        self, ticket: str, ended: Ended, cost: Decimal | None, usage: Usage | None = None
    ) -> None:
        """The attempt is over; a row that was settled before stays as it is."""
        counts = (usage.tokens_in, usage.cached, usage.tokens_out) if usage else (None,) * 3
        self._connection.execute(
            "UPDATE attempts SET ended = ?, cost = ?, tokens_in = ?, tokens_cached = ?, "
            "tokens_out = ? WHERE ticket = ? AND ended IS NULL",
            (ended, _text(cost), *counts, ticket),
        )

    def forget(self, before: float, now: float, dry_run: bool = False) -> int:
        """Forget the runs that did nothing since `before`, nor in the last KEPT_SECONDS; how many
        attempts that were, or would be. A run that goes on all the same finds that its account
        lacks them."""
        with transaction(self._connection):
            old = self._connection.execute(
                "SELECT run FROM (SELECT run, at FROM attempts UNION ALL "
                "SELECT run, at FROM commands) GROUP BY run HAVING max(at) < ?",
                (min(before, now - KEPT_SECONDS),),
            ).fetchall()
            count = "SELECT count(*) FROM attempts WHERE run = ?"
            attempts = sum(self._connection.execute(count, run).fetchone()[0] for run in old)
            for table in ("attempts", "commands", "refusals"):
                delete = f"DELETE FROM {table} WHERE run = ?"  # noqa: S608
                self._connection.executemany(delete, [] if dry_run else old)
        return int(attempts)

    def rows(self, run: str) -> Iterator[Row]:
        """The attempts of all commands of `run`. Raises sqlite3.DatabaseError where one of them
        cannot be read."""
        query = f"SELECT {_COLUMNS} FROM attempts WHERE run = ? ORDER BY at, ticket"  # noqa: S608
        for values in self._connection.execute(query, (run,)):
            try:
                row = _row(values)
            except (ValueError, ArithmeticError, LookupError, TypeError) as error:
                raise sqlite3.DatabaseError(f"attempt {values[0]!r} is damaged") from error
            yield row

    def refuse(self, run: str, model: str, cap: Decimal, prices: Prices) -> None:
        """Under `cap` and at `prices`, a call of `model` could not be sent any more."""
        self._connection.execute(
            "REPLACE INTO refusals VALUES (?, ?, ?, ?)",
            (run, model, str(cap), prices.model_dump_json()),
        )

    def refused(self, run: str) -> dict[str, tuple[Decimal, Prices]]:
        """The last cap under which a call of a model could not be sent, and the prices then. Raises
        sqlite3.DatabaseError where it cannot be read."""
        query = "SELECT model, cap, prices FROM refusals WHERE run = ?"
        try:
            return {
                str(model): (Decimal(cap), Prices.model_validate_json(prices))
                for model, cap, prices in self._connection.execute(query, (run,))
            }
        except (ValueError, ArithmeticError, TypeError) as error:
            raise sqlite3.DatabaseError("what was refused is damaged") from error


def _kinds(call: Call) -> str:
    return ",".join(sorted({what for what, _ in call.billed_to}))


def _values(row: Row) -> tuple[object, ...]:
    call = row.call
    sources = [[what, source, weight] for (what, source), weight in call.billed_to.items()]
    usage = row.usage
    return (
        *(row.ticket, row.command, call.model, orjson.dumps(sources).decode()),
        *(call.estimate_in, call.max_output, call.seconds),
        *(row.currency, _text(row.reserved), _text(row.cost)),
        *((usage.tokens_in, usage.cached, usage.tokens_out) if usage else (None,) * 3),
        *(row.ended, row.at),
    )


def _row(values: tuple[object, ...]) -> Row:
    (ticket, command, model, sources, estimate, output, seconds, *rest) = values
    currency, reserved, cost, tokens_in, cached, tokens_out, ended, at = rest
    billed_to = {(what, source): weight for what, source, weight in orjson.loads(str(sources))}
    usage = None
    if tokens_in is not None:
        usage = Usage(int(str(tokens_in)), int(str(tokens_out)), int(str(cached)))
    return Row(
        ticket=str(ticket),
        command=str(command),
        call=Call(str(model), int(str(estimate)), int(str(output)), float(str(seconds)), billed_to),
        currency=None if currency is None else str(currency),
        reserved=_decimal(reserved),
        cost=_decimal(cost),
        usage=usage,
        ended=None if ended is None else _ENDED[str(ended)],
        at=float(str(at)),
    )


_ENDED: dict[str, Ended] = {
    "answered": "answered",
    "free": "free",
    "unconfirmed": "unconfirmed",
}


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _decimal(text: object) -> Decimal | None:
    return None if text is None else Decimal(str(text))
