"""Slices of what a key may use: never over its limits, in whatever order things happen."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.meter_host import HELD_SECONDS
from tests.serve.slice_world import Cluster, Replica, key

D = Decimal

step = st.tuples(
    st.sampled_from(["ask", "ask", "ask", "end", "end", "letter", "letter", "lost", "unheard"]),
    st.integers(0, 2),
    st.integers(0, 100),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            step,
            st.tuples(
                st.sampled_from(["crash", "restart", "full"]),
                st.integers(0, 2),
                st.integers(0, 100),
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
            elif what == "full":
                cluster.full = not cluster.full
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
        cluster.full = False
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
