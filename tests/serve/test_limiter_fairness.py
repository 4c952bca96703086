"""Whose turn it is."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.contract import Class
from serve.ask.fairness import SLOW_SHARE, Queues, Ticket
from serve.ask.limiter import Limiter, Limits, Outcome
from serve.ask.permit import CLASSES
from tests.serve.limiter_world import Provider, World

ALL_SHARES: dict[Class, float] = {"online": 3 / 4, "retry": 5 / 48, "fast": 5 / 48, "slow": 1 / 24}


def turns(waiting: tuple[Class, ...], number: int) -> Counter[Class]:
    """Who gets the next `number` turns while tickets of all `waiting` classes are there."""
    queues, ids, served = Queues(), itertools.count(), Counter[Class]()
    for cls in waiting:
        for _ in range(2):
            queues.join(Ticket(str(next(ids)), cls, 1, 1.0))
    for _ in range(number):
        ticket = queues.next(slow_in_use=0, permits=20)
        assert ticket is not None
        queues.serve(ticket)
        served[ticket.cls] += 1
        queues.join(Ticket(str(next(ids)), ticket.cls, 1, 1.0))
    return served


@pytest.mark.parametrize(
    ("waiting", "shares"),
    [
        (CLASSES, ALL_SHARES),
        (("retry", "fast", "slow"), {"retry": 5 / 12, "fast": 5 / 12, "slow": 1 / 6}),
        (("fast", "slow"), {"fast": 5 / 6, "slow": 1 / 6}),
        (("retry", "fast"), {"retry": 1 / 2, "fast": 1 / 2}),
        (("online", "fast"), {"online": 3 / 4, "fast": 1 / 4}),
        (("online", "slow"), {"online": 3 / 4, "slow": 1 / 4}),
        (("slow",), {"slow": 1.0}),
    ],
)
def test_turns_are_shared_by_weight(waiting: tuple[Class, ...], shares: dict[Class, float]) -> None:
    served = turns(waiting, 4800)
    for cls, share in shares.items():
        assert served[cls] == pytest.approx(4800 * share, abs=2)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6))
def test_class_that_waits_gets_its_share_whatever_the_others_do(seed: int) -> None:
    rng = random.Random(seed)
    queues, ids = Queues(), itertools.count()
    mine = rng.choice(CLASSES)
    served = 0
    for turn in range(1, 200):
        for cls in CLASSES:
            wanted = 1 if cls == mine else rng.choice([0, 0, 1, 3])
            for _ in range(wanted - min(wanted, queues.waiting(cls))):
                queues.join(Ticket(str(next(ids)), cls, 1, 1.0))
        ticket = queues.next(slow_in_use=0, permits=20)
        assert ticket is not None
        queues.serve(ticket)
        served += ticket.cls == mine
        assert served >= int(turn * ALL_SHARES[mine]) - 3


def test_online_that_arrives_goes_before_all_who_wait() -> None:
    queues = Queues()
    for number in range(100):
        queues.join(Ticket(str(number), ("fast", "slow", "retry")[number % 3], 1, 1.0))
    for number in range(20):
        ticket = queues.next(slow_in_use=0, permits=20)
        assert ticket is not None
        queues.serve(ticket)
        queues.join(Ticket(f"online {number}", "online", 1, 1.0))
        ticket = queues.next(slow_in_use=0, permits=20)
        assert ticket is not None
        assert ticket.cls == "online"
        queues.serve(ticket)


def test_class_that_was_away_has_saved_up_nothing() -> None:
    queues = Queues()
    for number in range(100):
        queues.join(Ticket(f"fast {number}", "fast", 1, 1.0))
    for _ in range(50):
        queues.serve(queues.next(0, 20))  # type: ignore[arg-type]
    for number in range(100):
        queues.join(Ticket(f"slow {number}", "slow", 1, 1.0))
    served = Counter[Class]()
    for _ in range(12):
        ticket = queues.next(0, 20)
        assert ticket is not None
        queues.serve(ticket)
        served[ticket.cls] += 1
    assert served["slow"] <= 3


def test_first_come_first_served_within_a_class() -> None:
    queues = Queues()
    for number in range(20):
        queues.join(Ticket(str(number), "fast", 1, 1.0))
    queues.leave("7")
    order = []
    while ticket := queues.next(0, 20):
        queues.serve(ticket)
        order.append(int(ticket.id))
    assert order == [number for number in range(20) if number != 7]


def test_retry_goes_before_fast_that_waits_as_long() -> None:
    limiter = Limiter(Limits(max_concurrency=1), 0.0)
    limiter.enqueue("fast", "fast", 1)
    limiter.enqueue("retry", "retry", 1)
    assert [lease.id for lease in limiter.step(0.0).granted] == ["retry"]


def test_slow_holds_its_part_of_the_permits_while_others_wait_and_all_when_none_do() -> None:
    limiter = Limiter(Limits(max_concurrency=18), 0.0)
    now = 0.0
    in_use: Counter[Class] = Counter()
    alive: list[tuple[str, Class]] = []
    rng = random.Random(1)
    most_slow = 0
    for number in range(400):
        limiter.enqueue(f"slow {number}", "slow", 1)
        limiter.enqueue(f"fast {number}", "fast", 1)
    for _ in range(700):
        now += 0.1
        for lease in limiter.step(now).granted:
            alive.append((lease.id, lease.cls))
            in_use[lease.cls] += 1
        stats = limiter.stats(now)
        if stats.waiting["fast"]:
            assert in_use["slow"] <= max(1, stats.concurrency // SLOW_SHARE)
        elif stats.waiting["slow"]:
            assert sum(in_use.values()) == stats.concurrency
        most_slow = max(most_slow, in_use["slow"])
        done = rng.choice([each for each in alive if each[1] == "fast"] or alive)
        alive.remove(done)
        in_use[done[1]] -= 1
        limiter.settle(done[0], Outcome("ok"), now)
    assert most_slow == 18


def test_nobody_starves_when_everything_is_scarce() -> None:
    world = World(
        Limits(rpm=120, tpm=60_000, max_concurrency=10),
        Provider(rpm=120, tpm=60_000),
        seed=4,
        waiting=dict.fromkeys(CLASSES, 10),
        size=lambda rng: rng.randint(10, 3000),
    )
    world.run(1200)
    granted = Counter(lease.cls for lease in world.granted)
    for cls, share in ALL_SHARES.items():
        assert granted[cls] >= share * len(world.granted) - 3


def test_big_request_is_not_overtaken_for_ever_by_small_ones() -> None:
    limiter = Limiter(Limits(tpm=60_000), 0.0)
    limiter.enqueue("warm up", "fast", 59_000)
    limiter.step(0.0)
    limiter.enqueue("big", "fast", 50_000)
    now = 0.0
    for number in range(1000):
        limiter.enqueue(f"small {number}", "fast", 100)
        now = limiter.step(now).wake_at
        if limiter.step(now).granted:
            break
    assert now < 60
