"""Requests that take the place of others before the limiter knows: counted as all others are."""

from __future__ import annotations

import math

from serve.ask.fairness import Ticket
from serve.ask.limiter import Limiter
from serve.ask.permit import Limits, Outcome

OK = Outcome("ok", tokens=10)


def granted(limiter: Limiter, *ids: str) -> None:
    for each in ids:
        limiter.enqueue(each, "online", 10)
    assert len(limiter.step(0.0).granted) == len(ids)


def ticket(id_: str) -> Ticket:
    return Ticket(id_, "online", 10, 5.0)


def test_a_swap_takes_from_the_rate_and_leaves_as_many_in_flight() -> None:
    limiter = Limiter(Limits(rpm=1_000, max_concurrency=2), 0.0)
    granted(limiter, "a", "b")
    before = limiter.stats(0.0)
    assert limiter.swap("a", OK, ticket("c"), 0.0)
    after = limiter.stats(0.0)
    assert (after.in_use, after.peak, after.granted) == (2, 2, 3)
    assert before.at_once is not None
    assert after.at_once == before.at_once - 1
    # Heard twice, or of a lease that is not known, it changes nothing.
    assert not limiter.swap("a", OK, ticket("c"), 0.0)
    assert limiter.stats(0.0) == after
    limiter.settle("c", OK, 0.0)
    limiter.settle("b", OK, 0.0)
    assert limiter.stats(0.0).in_use == 0


def test_nothing_may_go_untold_while_anything_is_scarce() -> None:
    assert Limiter(Limits(), 0.0).ahead(0.0) == (64, math.inf)
    assert Limiter(Limits(rpm=60), 0.0).ahead(0.0)[0] == 0
    assert Limiter(Limits(tpm=6_000), 0.0).ahead(0.0)[1] < 60
    limiter = Limiter(Limits(max_concurrency=1), 0.0)
    granted(limiter, "a")
    limiter.enqueue("b", "slow", 10)
    assert limiter.ahead(0.0)[0] == 0, "somebody waits"
    limiter.withdraw("b", 0.0)
    assert limiter.ahead(0.0)[0] > 0
    limiter.settle("a", Outcome("rate_limited", retry_after=5, status=429), 0.0)
    assert limiter.ahead(0.0)[0] == 0, "the provider wants to be left alone"


def test_a_swap_after_the_breaker_opened_is_no_probe() -> None:
    limiter = Limiter(Limits(max_concurrency=20), 0.0)
    granted(limiter, "a", "b")
    for n in range(8):
        limiter.settle("b", Outcome("unavailable", status=500), 0.0)
        limiter.enqueue(f"x{n}", "fast", 10)
        for lease in limiter.step(0.0).granted:
            limiter.settle(lease.id, Outcome("unavailable", status=500), 0.0)
    assert limiter.stats(0.0).breaker == "open"
    assert limiter.ahead(0.0)[0] == 0
    assert limiter.swap("a", OK, ticket("c"), 0.0)
    assert limiter.stats(0.0).breaker == "open"
    limiter.settle("c", OK, 0.0)
    assert limiter.stats(0.0).breaker == "open"
