"""Replicas that share what a key may use, and the meter they write to, without Ray or a clock.

Invariant: a letter is lost only where a test says so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

from serve.gateway.errors import GatewayError, Overloaded
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_journal import MeterJournal
from serve.gateway.share import Share, Waiter
from serve.gateway.slice_host import SliceHost
from serve.gateway.slices import Asked, Renewal, Renewed

NOVEMBER = datetime(2026, 11, 30, 23, 0, tzinfo=UTC).timestamp()


def key(**limits: object) -> KeyRecord:
    """A key with these limits."""
    return KeyRecord.model_validate({"name": "web", "tenant": "w", "sha256": "0" * 64, **limits})


@contextmanager
def full_disk() -> Iterator[list[int]]:
    """While no journal can be written; how many changes it was given each time."""
    given: list[int] = []

    def write(_: MeterJournal, changes: Sequence[object]) -> None:
        given.append(len(changes))
        raise sqlite3.OperationalError("database or disk is full")

    with patch.object(MeterJournal, "write", write):
        yield given


class Cluster:
    """A meter and its clocks. `full`: nothing can be written down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now, self.wall = 100.0, NOVEMBER
        self.full = False
        self.host = self._host()

    def _host(self) -> SliceHost:
        return SliceHost(self.folder, lambda: self.now, lambda: self.wall)

    def restart(self) -> None:
        """As after a kill: the journal is let go, nothing more is written."""
        if self.host._journal is not None:
            self.host._journal.close()
        self.host = self._host()

    def take(self, letter: Renewal) -> Renewed | GatewayError:
        """As the actor does."""
        try:
            told = self.host.renew(letter)
        except GatewayError as error:
            return error
        with full_disk() if self.full else nullcontext():
            if self.host.write() is not None:
                return self.host.told(letter) or told
        return told

    def spent(self, record: KeyRecord) -> Decimal:
        account = self.host._account(record)
        assert account is not None
        return self.host._purse(account).spent


class Replica:
    """One replica's use of one key: what went, and why the others did not."""

    def __init__(self, cluster: Cluster, record: KeyRecord, name: str) -> None:
        self.cluster, self.record, self.share = cluster, record, Share(name)
        self.name = name
        self.went: dict[str, Asked] = {}
        self.refused: list[GatewayError] = []
        self.asked = 0
        self.letters = 0

    def ask(self, tokens: int = 1, worst: Decimal | None = None) -> None:
        self.asked += 1
        ticket, asked = f"{self.name}:{self.asked}", Asked(tokens, worst)
        if self.share.begin(self.record, ticket, asked, self.cluster.now):
            self.went[ticket] = asked
            return

        answered = False

        def answer(refused: GatewayError | None) -> bool:
            nonlocal answered
            if answered:
                return False
            answered = True
            if refused is None:
                self.went[ticket] = asked
            else:
                self.refused.append(refused)
            return True

        self.share.wait(Waiter(ticket, tokens, worst, answer))

    def exchange(self, *, lost: str = "", ending: bool = False) -> None:
        """Send what is to be said; `lost`: on the way there, or back."""
        self.letters += 1
        letter = self.share.letter(self.record, self.cluster.now, ending)
        told = self.cluster.take(letter) if lost != "there" else None
        if told is None or lost:
            self.share.unheard(Overloaded("nobody answered"), self.cluster.now)
        elif isinstance(told, GatewayError):
            self.share.unheard(told, self.cluster.now)
        else:
            for waiter in self.share.hear(self.record, letter, told, self.cluster.now):
                self.share = Share(f"{self.name}'")
                self.share.wait(waiter)

    def due(self) -> bool:
        return self.share.due_at() <= self.cluster.now


def busy(cluster: Cluster, replica: Replica, requests: int, pause: float, **asked: object) -> None:
    """Requests one after the other, each ended at once, and the letters that are due."""
    for _ in range(requests):
        cluster.now += pause
        replica.ask(**asked)  # type: ignore[arg-type]
        while replica.due():
            replica.exchange()
        replica.share.end(f"{replica.name}:{replica.asked}", 1, Decimal("0.001"), cluster.now)
