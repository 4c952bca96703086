"""Slices of what a key may use, held by replicas: never more than there is, and few letters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from serve.gateway.errors import KeyRateLimited, KeySpent
from serve.gateway.share import Share, Waiter
from serve.gateway.slices import SLICE_SECONDS, Renewed
from tests.serve.slice_world import Cluster, Replica, busy, key

D = Decimal


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.host.close()


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


def test_a_meter_is_at_rest_when_nothing_that_it_knows_counts(cluster: Cluster) -> None:
    replica = Replica(cluster, key(rpm=0.05), "a")
    assert cluster.host.at_rest()
    replica.ask()
    replica.exchange()
    replica.share.end("a:1", 1, None, cluster.now)
    cluster.now += 1_200
    assert not cluster.host.at_rest()
    replica.exchange()
    assert cluster.host.at_rest()
    replica.ask()
    replica.exchange()
    replica.share.end("a:2", 1, None, cluster.now)
    replica.exchange()
    cluster.now += 1_199
    assert not cluster.host.at_rest()
    cluster.now += 1
    assert cluster.host.at_rest()


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


def test_a_month_that_is_over_leaves_nothing_behind(cluster: Cluster) -> None:
    replica = Replica(cluster, key(max_spend=10), "a")
    replica.ask(worst=D(1))
    replica.exchange()
    november = replica.share
    november.end("a:1", 1, D(1), cluster.now)
    cluster.wall += 3_600
    replica.ask(worst=D(1))
    replica.exchange()
    assert november.closed
    assert november.unsaid
    letter = november.letter(replica.record, cluster.now)
    told = cluster.take(letter)
    assert isinstance(told, Renewed)
    november.hear(replica.record, letter, told, cluster.now)
    assert november.over
    assert not cluster.host._open


def test_many_that_leave_at_once_cost_little(cluster: Cluster) -> None:
    share, calls = Share("a"), 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    waiters = [Waiter(f"{number}", 1, None, lambda _: True) for number in range(1_000)]
    for waiter in waiters:
        share.wait(waiter)
    sys.setprofile(count)
    try:
        for waiter in reversed(waiters):
            share.leave(waiter)
    finally:
        sys.setprofile(None)
    assert calls < 10 * len(waiters)
    assert not share.unsaid


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
