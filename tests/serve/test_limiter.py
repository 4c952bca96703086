"""No permit leaks and no ticket is lost, whatever happens in whatever order."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.contract import Class
from serve.ask.limiter import LEASE_SLACK, Lease, Limiter, Limits, Outcome, OutcomeKind, strictest
from serve.ask.permit import CLASSES

KINDS: tuple[OutcomeKind, ...] = (
    "ok",
    "ok",
    "ok",
    "rate_limited",
    "unavailable",
    "timed_out",
    "rejected",
    "unsent",
)
CALL_SECONDS = 20.0


class Schedule:
    """Random events against a limiter, and a plain account of what must be true."""

    def __init__(self, limits: Limits, seed: int) -> None:
        self.rng = random.Random(seed)
        self.limits = limits
        self.now = 0.0
        self.limiter = Limiter(limits, self.now)
        self.waiting: dict[str, Class] = {}
        self.alive: dict[str, Lease] = {}
        self.fate: Counter[str] = Counter()
        self.number = 0
        self.wake_at = math.inf

    def decide(self) -> None:
        decided = self.limiter.step(self.now)
        for ticket_id in [id_ for id_, a in self.alive.items() if a.expires_at <= self.now]:
            del self.alive[ticket_id]
        for lease in decided.granted:
            assert self.waiting.pop(lease.id) == lease.cls
            self.fate[lease.id] += 1
            self.alive[lease.id] = lease
        for ticket_id, seconds in decided.refused.items():
            assert self.waiting.pop(ticket_id) == "online"
            assert seconds > 0
            self.fate[ticket_id] += 1
        assert decided.wake_at > self.now
        assert not self.limiter.step(self.now).granted, "a second look finds nothing new"
        self.wake_at = decided.wake_at
        self.check()

    def check(self) -> None:
        stats = self.limiter.stats(self.now)
        assert stats.in_use == len(self.alive) <= self.limits.max_concurrency
        assert 1 <= stats.concurrency <= self.limits.max_concurrency
        assert stats.waiting == {
            cls: sum(each == cls for each in self.waiting.values()) for cls in CLASSES
        }
        assert stats.peak >= stats.in_use

    def join(self) -> None:
        self.number += 1
        cls = self.rng.choice(CLASSES)
        self.waiting[str(self.number)] = cls
        self.limiter.enqueue(str(self.number), cls, self.rng.randint(0, 5000), CALL_SECONDS)

    def withdraw(self) -> None:
        if self.waiting:
            ticket_id = self.rng.choice(list(self.waiting))
            del self.waiting[ticket_id]
            self.fate[ticket_id] += 1
            self.limiter.withdraw(ticket_id, self.now)

    def settle(self, kinds: tuple[OutcomeKind, ...] = KINDS) -> None:
        if self.alive:
            lease = self.alive.pop(self.rng.choice(list(self.alive)))
            retry_after = self.rng.choice([None, None, 0.0, 2.0])
            outcome = Outcome(
                self.rng.choice(kinds), self.rng.choice([None, 100, 9000]), retry_after
            )
            self.limiter.settle(lease.id, outcome, self.now)
            self.limiter.settle(lease.id, outcome, self.now)

    def vanish(self) -> None:
        if self.alive or self.waiting:
            ticket_id = self.rng.choice([*self.alive, *self.waiting])
            if self.waiting.pop(ticket_id, None):
                self.fate[ticket_id] += 1
            self.alive.pop(ticket_id, None)
            self.limiter.expire(ticket_id, self.now)

    def wait(self) -> None:
        until = self.now + self.rng.expovariate(1.0)
        while self.wake_at <= until:
            self.now = self.wake_at
            self.decide()
        self.now = until

    def run(self, events: int) -> None:
        for _ in range(events):
            event = self.rng.choices(
                [self.join, self.settle, self.wait, self.withdraw, self.vanish], [6, 5, 4, 1, 1]
            )[0]
            event()
            self.decide()

    def finish(self) -> None:
        """All goes well from here on: whoever still waits gets a turn."""
        for _ in range(20_000):
            if not self.waiting and not self.alive:
                return
            while self.alive:
                self.settle(("ok",))
            self.decide()
            if self.wake_at < math.inf and not self.alive:
                self.now = self.wake_at
                self.decide()
        raise AssertionError(f"{len(self.waiting)} tickets are never granted")


@settings(max_examples=100)
@given(
    limits=st.builds(
        Limits,
        rpm=st.none() | st.floats(10, 10_000),
        tpm=st.none() | st.floats(10_000, 1e7),
        burst=st.none() | st.integers(1, 100),
        max_concurrency=st.integers(1, 30),
        share=st.floats(0.2, 1.0),
    ),
    seed=st.integers(0, 10**9),
)
def test_every_ticket_has_one_fate_and_every_permit_one_lease(limits: Limits, seed: int) -> None:
    schedule = Schedule(limits, seed)
    schedule.run(80)
    schedule.finish()
    assert schedule.limiter.stats(schedule.now).in_use == 0
    assert set(schedule.fate.values()) <= {1}
    assert len(schedule.fate) == schedule.number


def test_lease_whose_holder_never_settles_expires() -> None:
    limiter = Limiter(Limits(max_concurrency=1), 0.0)
    limiter.enqueue("lost", "fast", 1, call_seconds=60.0)
    limiter.enqueue("next", "fast", 1)
    [lease] = limiter.step(0.0).granted
    assert lease.expires_at == 60.0 + LEASE_SLACK
    assert limiter.step(0.0).wake_at == lease.expires_at
    assert not limiter.step(lease.expires_at - 0.01).granted
    assert [granted.id for granted in limiter.step(lease.expires_at).granted] == ["next"]
    assert limiter.stats(lease.expires_at).expired == 1


def test_settling_an_expired_lease_changes_nothing() -> None:
    limiter = Limiter(Limits(max_concurrency=1), 0.0)
    limiter.enqueue("lost", "fast", 1, call_seconds=10.0)
    limiter.step(0.0)
    limiter.enqueue("next", "fast", 1)
    limiter.step(40.0)
    limiter.settle("lost", Outcome("ok"), 41.0)
    assert limiter.stats(41.0).in_use == 1


def test_withdrawn_holder_gives_its_permit_to_the_next() -> None:
    limiter = Limiter(Limits(rpm=60, burst=1, max_concurrency=1), 0.0)
    limiter.enqueue("cancelled", "fast", 1)
    limiter.step(0.0)
    limiter.enqueue("next", "fast", 1)
    limiter.withdraw("cancelled", 0.0)
    assert [lease.id for lease in limiter.step(0.0).granted] == ["next"]


def test_other_limits_hold_from_the_moment_they_are_set() -> None:
    limiter = Limiter(Limits(max_concurrency=20), 0.0)
    for number in range(10):
        limiter.enqueue(str(number), "fast", 1)
    assert len(limiter.step(0.0).granted) == 5
    limiter.set_limits(Limits(max_concurrency=2), 0.0)
    for number in range(3):
        limiter.settle(str(number), Outcome("ok"), 1.0)
        assert not limiter.step(1.0).granted
    limiter.settle("3", Outcome("ok"), 1.0)
    assert len(limiter.step(1.0).granted) == 1


def test_what_a_lost_limiter_granted_counts() -> None:
    limiter = Limiter(Limits(rpm=60, tpm=60_000), 0.0)
    limiter.sent_before(59, 30_000, 0.0)
    limiter.enqueue("a", "fast", 100)
    assert limiter.step(0.0).wake_at == pytest.approx(0.25 / 0.98)


def test_retry_budget_is_ten_and_a_tenth_per_success_and_one_per_ten_seconds() -> None:
    limiter = Limiter(Limits(), 0.0)
    for number in range(13):
        limiter.enqueue_retry(f"retry {number}")
    decided = limiter.step(0.0)
    assert decided.retries == tuple(f"retry {number}" for number in range(10))
    assert decided.wake_at == pytest.approx(10.0)
    assert limiter.step(10.0).retries == ("retry 10",)
    for number in range(10):
        assert not limiter.step(10.0).retries
        limiter.enqueue(f"call {number}", "fast", 1)
        limiter.step(10.0)
        limiter.settle(f"call {number}", Outcome("ok"), 10.0)
    assert limiter.step(10.0).retries == ("retry 11",)
    limiter.withdraw("retry 12", 10.0)
    assert not limiter.step(1000.0).retries
    assert limiter.stats(1000.0).retries == 12


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6))
def test_retries_stay_within_their_budget(seed: int) -> None:
    rng = random.Random(seed)
    limiter, now, good, retries = Limiter(Limits(), 0.0), 0.0, 0, 0
    for number in range(200):
        now += rng.expovariate(1.0)
        if rng.random() < 0.3:
            limiter.enqueue(f"c{number}", "fast", 1)
            limiter.step(now)
            limiter.settle(f"c{number}", Outcome("ok"), now)
            good += 1
        else:
            limiter.enqueue_retry(f"r{number}")
        retries += len(limiter.step(now).retries)
        assert retries <= 10 + 0.1 * good + now / 10 + 1e-3


def test_strictest_limits_hold_field_by_field() -> None:
    assert strictest(
        [
            Limits(rpm=60, max_concurrency=10),
            Limits(rpm=120, burst=100, tpm=5000, share=0.5),
            Limits(tpm=9000, max_concurrency=30),
        ]
    ) == Limits(rpm=60, burst=60, tpm=5000, max_concurrency=10, share=0.5)


@pytest.mark.parametrize(
    "wrong", [{"rpm": 0}, {"tpm": -1}, {"max_concurrency": 0}, {"share": 0}, {"share": 1.5}]
)
def test_limit_that_lets_nothing_through_is_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]
