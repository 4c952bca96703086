"""The journal of what keys spend: one row for each month's account, one for each request in flight.

Invariant: what `write` was given survives the end of this process, all of it or nothing; only one
process at a time has the journal open. SQLite in WAL mode, readable by its owner only; it holds
names of keys, tickets and amounts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence, Set
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from serve.ask.answers_file import transaction
from serve.ask.errors import Misconfigured
from serve.gateway.purse import Account

FILE = "keys.db"
BUSY_SECONDS = 0.5
"""How long to wait for one that is about to end to let go of the journal; nobody is answered
meanwhile."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spent (
    key TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL,
    PRIMARY KEY (key, month, currency)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held (
    ticket TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    worst TEXT NOT NULL,
    began REAL NOT NULL
) WITHOUT ROWID;
"""


class Began(NamedTuple):
    """A request is about to be sent that costs `worst` at most; `at`: seconds since the epoch."""

    ticket: str
    account: Account
    worst: Decimal
    at: float


class Ended(NamedTuple):
    """A request is over; `spent`: of its account from now on."""

    ticket: str
    account: Account
    spent: Decimal


NO_TICKET = ""
"""Of an `Ended` that only tells what was spent."""


def unwritten(changes: Iterable[Began | Ended]) -> set[str]:
    """The tickets that the journal does not know if it was not given `changes`."""
    known: set[str] = set()
    unknown = {NO_TICKET}
    for change in changes:
        if isinstance(change, Ended):
            known.add(change.ticket)
        elif change.ticket not in known:
            unknown.add(change.ticket)
    return unknown


def condensed(changes: Sequence[Began | Ended], unknown: Set[str]) -> list[Began | Ended]:
    """What comes to the same as `changes` where the journal does not know the tickets `unknown`:
    of those that have ended only what was spent in the end. So what cannot be written for a long
    time takes no more memory than what is in flight."""
    last = {change.account: change for change in changes if isinstance(change, Ended)}
    kept: list[Began | Ended] = []
    for change in changes:
        if isinstance(change, Began) or change.ticket not in unknown:
            kept.append(change)
        elif change is last[change.account]:
            kept.append(change._replace(ticket=NO_TICKET))
    return kept


class MeterJournal:
    """One open journal. Use it from one thread."""

    def __init__(self, folder: Path) -> None:
        """Open or create the journal in `folder`. Raises Misconfigured where it cannot be used."""
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise Misconfigured(f"cannot open {path} (serve.state): {error}") from error
        try:
            # As in the store of answers: what was committed survives the process without an fsync.
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._connection.close()
            raise Misconfigured(_words(path, error)) from error
        self._path = path

    def close(self) -> None:
        """Close the journal; what was written is kept."""
        self._connection.close()

    def accounts(self) -> Iterator[tuple[Account, Decimal]]:
        """What was spent by requests that are over. Raises Misconfigured where it is damaged."""
        for *account, amount in self._rows("SELECT key, month, currency, amount FROM spent"):
            yield Account(*map(str, account)), self._amount(amount)

    def held(self) -> Iterator[Began]:
        """The requests that have not ended, the oldest first. Raises Misconfigured where it is
        damaged."""
        query = "SELECT ticket, key, month, currency, worst, began FROM held ORDER BY began"
        for ticket, *account, worst, began in self._rows(query):
            at = float(self._amount(began))
            yield Began(str(ticket), Account(*map(str, account)), self._amount(worst), at)

    def write(self, changes: Iterable[Began | Ended]) -> None:
        """Write down `changes` in their order. Raises sqlite3.Error."""
        with transaction(self._connection):
            for change in changes:
                account = change.account
                whose = (account.key, account.month, account.currency)
                if isinstance(change, Began):
                    self._connection.execute(
                        "INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?, ?, ?)",
                        (change.ticket, *whose, str(change.worst), change.at),
                    )
                else:
                    self._connection.execute("DELETE FROM held WHERE ticket = ?", (change.ticket,))
                    self._connection.execute(
                        "REPLACE INTO spent VALUES (?, ?, ?, ?)", (*whose, str(change.spent))
                    )

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(query).fetchall()
        except sqlite3.Error as error:
            raise Misconfigured(_words(self._path, error)) from error

    def _amount(self, text: object) -> Decimal:
        try:
            amount = Decimal(str(text))
        except ArithmeticError:
            amount = Decimal("NaN")
        if not amount.is_finite():
            raise Misconfigured(_words(self._path, "an amount is damaged"))
        return amount


def _words(path: Path, problem: object) -> str:
    if "locked" in str(problem):
        return (
            f"{path} is in use by another gateway: end that one, or give this one a folder of its "
            "own (serve.state)"
        )
    return (
        f"what keys spent cannot be read from {path}: {problem}. Put back a copy, or move the file "
        "away to let every key begin at nothing"
    )
