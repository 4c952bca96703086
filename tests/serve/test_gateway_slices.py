"""Slices of what a key may use, held by replicas: never more than there is, whatever is lost."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.errors import GatewayError, KeyRateLimited, KeySpent, Overloaded
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_host import HELD_SECONDS
from serve.gateway.meter_journal import MeterJournal
from serve.gateway.share import Share, Waiter
from serve.gateway.slice_host import SliceHost
from serve.gateway.slices import SLICE_SECONDS, Asked, Renewal, Renewed

D = Decimal
NOVEMBER = datetime(2026, 11, 30, 23, 0, tzinfo=UTC).timestamp()


def key(**limits: object) -> KeyRecord:
    return KeyRecord.model_validate({"name": "web", "tenant": "w", "sha256": "0" * 64, **limits})


class Cluster:
    """A meter and its clocks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now, self.wall = 100.0, NOVEMBER
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.host.close()


def busy(cluster: Cluster, replica: Replica, requests: int, pause: float, **asked: object) -> None:
    """Requests one after the other, each ended at once, and the letters that are due."""
    for _ in range(requests):
        cluster.now += pause
        replica.ask(**asked)  # type: ignore[arg-type]
        while replica.due():
            replica.exchange()
        replica.share.end(f"{replica.name}:{replica.asked}", 1, D("0.001"), cluster.now)


def test_a_busy_key_needs_few_letters_and_a_quiet_one_holds_nothing(cluster: Cluster) -> None:
    replica = Replica(cluster, key(rpm=1_000_000, max_spend=1_000), "a")
    busy(cluster, replica, 1_000, 0.002, worst=D("0.01"))
    assert not replica.refused
    assert len(replica.went) == 1_000
    assert replica.letters < 25
    cluster.now += SLICE_SECONDS
    while replica.share.unsaid:
        cluster.now += SLICE_SECONDS
        replica.exchange()
    assert replica.share.over
    assert cluster.spent(replica.record) == D(1)
    assert not cluster.host._open
    assert not cluster.host._slices
    assert not cluster.host._reserved


def test_a_lone_request_takes_no_slice(cluster: Cluster) -> None:
    replica = Replica(cluster, key(rpm=60, max_spend=10), "a")
    busy(cluster, replica, 5, 3.0, worst=D(1))
    assert not cluster.host._reserved
    assert len(replica.went) == 5


def test_the_last_request_is_the_last_that_the_limit_allows(cluster: Cluster) -> None:
    record = key(rpm=100)
    first, second = Replica(cluster, record, "a"), Replica(cluster, record, "b")
    for _ in range(200):
        for replica in (first, second):
            replica.ask()
            while replica.due():
                replica.exchange()
    went = len(first.went) + len(second.went)
    assert went <= 100
    # What one of them still holds comes back.
    cluster.now += SLICE_SECONDS
    first.exchange(ending=True)
    second.exchange(ending=True)
    for _ in range(100):
        second.ask()
    second.exchange()
    assert 100 <= len(first.went) + len(second.went) <= 101
    assert isinstance(second.refused[-1], KeyRateLimited)


def test_all_the_money_can_be_spent_and_no_more(cluster: Cluster) -> None:
    record = key(max_spend=1)
    replica = Replica(cluster, record, "a")
    busy(cluster, replica, 2_000, 0.002, worst=D("0.002"))
    cluster.now += 1
    replica.exchange(ending=True)
    assert D("0.998") < cluster.spent(record) <= D(1)
    assert isinstance(replica.refused[-1], KeySpent)


def test_what_a_dead_replica_held_counts_in_full_and_its_rates_flow_again(cluster: Cluster) -> None:
    record = key(rpm=600, max_spend=100)
    dead = Replica(cluster, record, "dead")
    busy(cluster, dead, 100, 0.004, worst=D("0.5"))
    held = sum(cluster.host._purse(cluster.host._account(record)).held.values())  # type: ignore[arg-type]
    before = cluster.spent(record)
    cluster.now += 120
    other = Replica(cluster, record, "other")
    for _ in range(700):
        other.ask(worst=D(0))
    other.exchange()
    assert len(other.went) == 600, "all of the rate is there again"
    cluster.now += HELD_SECONDS
    other.ask(worst=D(0))
    other.exchange()
    assert cluster.spent(record) == before + held


def test_a_month_that_is_over_is_settled_as_what_it_was(cluster: Cluster) -> None:
    record = key(max_spend=10)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(9))
    replica.exchange()
    november = replica.share
    cluster.wall += 3_600
    replica.ask(worst=D(10))
    replica.exchange()
    assert november.closed
    assert len(replica.went) == 1
    replica.exchange()
    assert len(replica.went) == 2, "December has money of its own"
    november.end("a:1", 1, D(4), cluster.now)
    letter = november.letter(record, cluster.now)
    told = cluster.take(letter)
    assert isinstance(told, Renewed)
    assert november.hear(record, letter, told, cluster.now) == []
    assert november.over
    assert cluster.spent(record) == 0
    cluster.wall -= 3_600
    assert cluster.spent(record) == 4


@pytest.mark.parametrize("lost", ["there", "back"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_letter_that_is_lost_counts_once(cluster: Cluster, lost: str, restarted: bool) -> None:
    record = key(max_spend=10)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(3))
    replica.exchange()
    replica.share.end("a:1", 1, D(1), cluster.now)
    replica.ask(worst=D(9))
    replica.exchange(lost=lost)
    assert len(replica.refused) == 1
    if restarted:
        cluster.restart()
    replica.exchange()
    # Nobody waits for what it grants any more, and it is given back.
    replica.exchange()
    replica.ask(worst=D(9))
    replica.exchange()
    assert cluster.spent(record) == 1
    assert "a:3" in replica.went


def test_what_cannot_be_written_down_is_not_granted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = key(max_spend=10, rpm=100)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(4))
    replica.exchange()

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(MeterJournal, "write", full)
        replica.ask(worst=D(5))
        replica.exchange()
        assert isinstance(replica.refused[0], Overloaded)
    replica.share.end("a:1", 1, D(4), cluster.now)
    replica.ask(worst=D(6))
    replica.exchange()
    assert "a:3" in replica.went
    cluster.restart()
    assert cluster.spent(record) == 4


def test_a_slice_that_is_used_late_is_not_refilled_meanwhile(cluster: Cluster) -> None:
    record = key(rpm=600)
    first, second = Replica(cluster, record, "a"), Replica(cluster, record, "b")
    busy(cluster, first, 12, 0.001)
    before = len(first.went)
    cluster.now += 1.5  # its letter is late; the rate of 15 requests flows in
    for _ in range(700):
        second.ask()
    second.exchange()
    while not first.share._queue:
        first.ask()
    # At one moment at most a minute's worth, less what flowed in for what went before.
    assert 580 < len(second.went) + len(first.went) - before <= 600
    assert len(first.went) > before


step = st.tuples(
    st.sampled_from(["ask", "ask", "ask", "end", "end", "letter", "letter", "lost", "unheard"]),
    st.integers(0, 2),
    st.integers(0, 100),
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.one_of(
            step,
            st.tuples(
                st.sampled_from(["crash", "restart"]), st.integers(0, 2), st.integers(0, 100)
            ),
        ),
        max_size=150,
    ),
    st.sampled_from([0.001, 0.05, 1.0]),
)
def test_nothing_is_over_the_limit_whatever_happens(
    steps: list[tuple[str, int, int]], pause: float
) -> None:
    rpm, tpm, money = 60.0, 600.0, D(5)
    record = key(rpm=rpm, tpm=tpm, max_spend=money)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        replicas = [Replica(cluster, record, f"r{n}") for n in range(3)]
        cost = D(0)
        went: list[tuple[float, int]] = []
        seen: set[str] = set()
        restarted = False
        for number, (what, which, amount) in enumerate(steps):
            cluster.now += pause * (amount % 7)
            replica = replicas[which]
            if what == "ask":
                for _ in range(1 + amount % 4):
                    replica.ask(1 + amount % 20, D(amount) / 500)
            elif what == "end" and replica.went:
                ticket = list(replica.went)[amount % len(replica.went)]
                asked = replica.went.pop(ticket)
                assert asked.worst is not None
                known = amount % 3
                paid = asked.worst / 2 if known else asked.worst
                replica.share.end(
                    ticket, asked.tokens if known else None, paid if known else None, cluster.now
                )
                cost += paid
            elif what == "crash":
                # All that it had in flight may have cost what it could.
                cost += sum((asked.worst or D(0) for asked in replica.went.values()), D(0))
                replicas[which] = Replica(cluster, record, f"r{which}-{number}")
            elif what == "restart":
                cluster.restart()
                restarted = True
            elif what in {"letter", "lost", "unheard"}:
                replica.exchange(lost={"letter": "", "lost": "back", "unheard": "there"}[what])
            for one in replicas:
                for ticket, asked in one.went.items():
                    if ticket not in seen:
                        seen.add(ticket)
                        went.append((cluster.now, asked.tokens))
        flying = sum((a.worst or D(0) for one in replicas for a in one.went.values()), D(0))
        assert cost + flying <= money
        if not restarted:  # rates begin anew then
            for first, (since, _) in enumerate(went):
                for last in range(first, len(went)):
                    span = went[last][0] - since
                    assert last - first + 1 <= rpm + rpm / 60 * span + 1e-6
                    tokens = sum(tokens for _, tokens in went[first : last + 1])
                    assert tokens <= tpm + tpm / 60 * span + 1e-6
        # Everything comes back: what is known by telling, the rest as used.
        for one in replicas:
            for ticket in list(one.went):
                one.share.end(ticket, 1, D(0), cluster.now)
            for _ in range(4):
                one.exchange(ending=True)
        cluster.now += HELD_SECONDS + 60
        other = Replica(cluster, key(rpm=rpm, tpm=tpm, max_spend=10**6), "other")
        for _ in range(61):
            other.ask(10, D(0))
        other.exchange()
        assert len(other.went) == 60
        assert cluster.spent(record) >= cost
        cluster.host.close()
