"""How many calls are in flight."""

from __future__ import annotations

import pytest

from serve.ask.aimd import START, Concurrency
from serve.ask.limiter import Limiter, Limits, Outcome
from tests.serve.limiter_world import Provider, World


def busy(concurrency: Concurrency, times: int) -> None:
    """So many good calls while all permits are in use."""
    for _ in range(times):
        concurrency.good(in_use=concurrency.limit)


def test_starts_at_five_and_grows_by_one_per_good_call_up_to_the_cap() -> None:
    concurrency = Concurrency(cap=20)
    assert concurrency.limit == START == 5
    for expected in [*range(6, 21), 20, 20]:
        busy(concurrency, 1)
        assert concurrency.limit == expected


def test_cap_below_the_start_holds() -> None:
    concurrency = Concurrency(cap=2)
    busy(concurrency, 10)
    assert concurrency.limit == 2


def test_does_not_grow_while_half_of_it_lies_idle() -> None:
    concurrency = Concurrency(cap=20)
    for _ in range(20):
        concurrency.good(in_use=2)
    assert concurrency.limit == 5


def test_one_generation_of_failures_halves_once() -> None:
    concurrency = Concurrency(cap=20)
    busy(concurrency, 15)
    for call in range(1, 21):
        concurrency.overloaded(call, last_call=20)
    assert concurrency.limit == 10
    concurrency.overloaded(21, last_call=30)
    assert concurrency.limit == 5
    concurrency.overloaded(25, last_call=30)
    assert concurrency.limit == 5


def test_never_below_one() -> None:
    concurrency = Concurrency(cap=20)
    for call in range(1, 30):
        concurrency.overloaded(call, last_call=call)
    assert concurrency.limit == 1


def test_ceiling_is_remembered_and_approached_slowly() -> None:
    concurrency = Concurrency(cap=100)
    busy(concurrency, 35)
    concurrency.overloaded(1, last_call=40)
    assert concurrency.limit == 20
    busy(concurrency, 16)
    assert concurrency.limit == 36, "fast up to nine tenths of the ceiling"
    busy(concurrency, 36)
    assert concurrency.limit == 36
    busy(concurrency, 500)
    assert concurrency.limit > 40, "but not for ever"


def test_ceiling_that_has_gone_is_forgotten() -> None:
    concurrency = Concurrency(cap=100)
    concurrency.overloaded(1, last_call=5)
    busy(concurrency, 200)
    assert concurrency.limit == 100


@pytest.mark.parametrize(
    ("outcome", "halves"),
    [
        (Outcome("unavailable", status=503), True),
        (Outcome("unavailable", status=504), True),
        (Outcome("unavailable"), True),
        (Outcome("timed_out"), True),
        (Outcome("unavailable", status=500), False),
        (Outcome("unavailable", status=502), False),
        (Outcome("rate_limited", retry_after=1.0), False),
        (Outcome("rejected", status=400), False),
        (Outcome("unsent"), False),
    ],
)
def test_only_signs_of_overload_halve_it(outcome: Outcome, halves: bool) -> None:
    limiter = Limiter(Limits(), 0.0)
    limiter.enqueue("a", "fast", 1)
    limiter.step(0.0)
    limiter.settle("a", outcome, 1.0)
    assert limiter.stats(1.0).concurrency == (2 if halves else 5)


@pytest.mark.parametrize("seed", range(3))
def test_provider_that_holds_twelve_is_kept_near_twelve(seed: int) -> None:
    world = World(Limits(max_concurrency=40), Provider(concurrent=12, latency=(2.0, 3.0)), seed)
    world.run(400)
    assert world.count("unavailable", since=50) <= 0.05 * world.count("ok", since=50)
    assert world.count("ok", since=50) >= 0.85 * 12 * 350 / 2.7


@pytest.mark.parametrize("seed", range(3))
def test_failures_by_chance_do_not_starve_the_work(seed: int) -> None:
    world = World(Limits(), Provider(failing=0.05, latency=(2.0, 3.0)), seed)
    world.run(400)
    assert world.count("ok") >= 0.4 * 20 * 400 / 2.7


def test_outage_counts_as_one_halving() -> None:
    concurrency = Concurrency(cap=100)
    busy(concurrency, 35)
    for call in range(1, 5):
        concurrency.overloaded(call, last_call=call)
    assert concurrency.limit == 2
    concurrency.outage_over()
    assert concurrency.limit == 20
    busy(concurrency, 80)
    assert concurrency.limit == 100, "and leaves no ceiling"
