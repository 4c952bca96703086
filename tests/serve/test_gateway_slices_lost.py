"""Slices whose holder dies, whose letter is lost, or that cannot be written down: nothing counts
twice, and never more is used than there is."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from serve.gateway.errors import Overloaded
from serve.gateway.meter_host import HELD_SECONDS
from serve.gateway.slices import LATE_SECONDS, Renewed
from tests.serve.slice_world import Cluster, Replica, busy, full_disk, key

D = Decimal


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.host.close()


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


def test_a_dead_replicas_money_counts_after_an_hour_whoever_counts_then(cluster: Cluster) -> None:
    record = key(max_spend=10)
    dead, other = Replica(cluster, record, "dead"), Replica(cluster, record, "other")
    dead.ask(worst=D(9))
    dead.exchange()
    for _ in range(4):
        cluster.now += HELD_SECONDS / 4
        cluster.wall += HELD_SECONDS / 4
        cluster.restart()
        other.ask(worst=D(0))
        other.exchange()
        other.share.end(f"other:{other.asked}", 1, D(0), cluster.now)
    cluster.wall -= HELD_SECONDS
    assert cluster.spent(record) == 9


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


def test_a_first_letter_that_arrives_again_after_its_successor_counts_once(
    cluster: Cluster,
) -> None:
    record = key(max_spend=10, rpm=60)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(9))
    first = replica.share.letter(record, cluster.now)
    replica.exchange()
    replica.share.end("a:1", 1, D(1), cluster.now)
    replica.exchange()
    assert replica.share.over
    late = cluster.take(first)
    assert isinstance(late, Renewed)
    assert late.state == "lost"
    assert not cluster.host._open
    replica.ask(worst=D(9))
    replica.exchange()
    assert "a:2" in replica.went
    cluster.now += LATE_SECONDS
    Replica(cluster, record, "b").exchange()
    assert list(cluster.host._heard) == ["b"]


def test_what_cannot_be_written_down_is_not_granted(cluster: Cluster) -> None:
    record = key(max_spend=10, rpm=100)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(4))
    replica.exchange()

    with full_disk():
        replica.ask(worst=D(5))
        replica.exchange()
        assert isinstance(replica.refused[0], Overloaded)
    replica.share.end("a:1", 1, D(4), cluster.now)
    replica.ask(worst=D(6))
    replica.exchange()
    assert "a:3" in replica.went
    cluster.restart()
    assert cluster.spent(record) == 4


def test_what_cannot_be_written_for_long_takes_no_more_and_more(cluster: Cluster) -> None:
    record = key(max_spend=10)
    replica = Replica(cluster, record, "a")
    replica.ask(worst=D(4))
    replica.exchange()
    with full_disk() as given:
        for _ in range(50):
            replica.ask(worst=D(5))
            replica.exchange()
        assert max(given) <= 5
    replica.share.end("a:1", 1, D(1), cluster.now)
    with full_disk() as given:
        for _ in range(50):
            replica.ask(worst=D(5))
            replica.exchange()
        assert max(given) <= 5
    replica.ask(worst=D(9))
    replica.exchange()
    assert list(replica.went) == ["a:1", "a:102"]
    cluster.restart()
    assert cluster.spent(record) == 1
