"""At the provider's limit, without storms: an honest provider in simulated time."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.buckets import PACE, SKEW, TokenBucket, capacity_for
from serve.ask.limiter import Lease, Limiter, Limits, Outcome
from tests.serve.limiter_world import Provider, World

pytestmark = pytest.mark.slow


def pack(rng: random.Random) -> int:
    return rng.randint(50, 6000)


@settings(max_examples=60)
@given(
    rpm=st.integers(20, 1500),
    burst_seconds=st.floats(2.0, 60.0),
    delay=st.floats(0.0, SKEW),
    slowest=st.floats(0.1, 8.0),
    seed=st.integers(0, 10**6),
)
def test_right_request_limit_is_never_refused(
    rpm: int, burst_seconds: float, delay: float, slowest: float, seed: int
) -> None:
    burst = max(2, round(rpm * burst_seconds / 60))
    world = World(
        Limits(rpm=rpm, burst=burst, max_concurrency=300),
        Provider(rpm=rpm, burst=burst, delay=(0.0, delay), latency=(0.1, slowest)),
        seed,
    )
    world.run(40)
    assert world.count("rate_limited") == 0


@settings(max_examples=100)
@given(tpm=st.integers(10_000, 2_000_000), reserve=st.floats(1.0, 2.0), seed=st.integers(0, 10**6))
def test_right_token_limit_is_never_refused(tpm: int, reserve: float, seed: int) -> None:
    world = World(Limits(tpm=tpm), Provider(tpm=tpm), seed, size=pack, reserve=reserve)
    world.run(120)
    assert world.count("rate_limited") == 0


@pytest.mark.parametrize("rpm", [30, 60, 600])
def test_right_request_limit_is_used_up(rpm: int) -> None:
    world = World(Limits(rpm=rpm, max_concurrency=100), Provider(rpm=rpm), seed=1)
    world.run(300)
    first, last = world.granted[0].granted_at, world.now
    possible = rpm + rpm / 60 * (last - first)
    assert len(world.granted) >= 0.95 * possible


def test_right_token_limit_is_used_up() -> None:
    tpm = 60_000
    world = World(Limits(tpm=tpm), Provider(tpm=tpm), seed=1, size=pack, reserve=1.5)
    world.run(600)
    used = sum(outcome.tokens or 0 for _, _, outcome in world.ended)
    assert used >= 0.95 * tpm * 600 / 60


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("retry_after", [True, False])
@pytest.mark.parametrize(
    ("limits", "rpm"),
    [
        (Limits(), 30),
        (Limits(), 60),
        (Limits(max_concurrency=100), 600),
        (Limits(rpm=120), 60),
        (Limits(rpm=1200, max_concurrency=100), 600),
        (Limits(rpm=600), 60),
    ],
)
def test_wrong_request_limit_is_found_out(
    limits: Limits, rpm: int, retry_after: bool, seed: int
) -> None:
    world = World(limits, Provider(rpm=rpm, retry_after=retry_after), seed)
    world.run(500)
    assert world.share_of_429s(since=200) <= 0.03
    assert world.count("ok", since=200) >= 0.95 * rpm * 300 / 60


@pytest.mark.parametrize("seed", range(3))
def test_first_hundred_calls_under_an_unknown_limit_meet_few_429s(seed: int) -> None:
    world = World(Limits(), Provider(rpm=60, latency=(3.0, 4.5)), seed)
    world.run(70)
    assert world.count("ok") >= 110
    assert world.share_of_429s() <= 0.06


@pytest.mark.parametrize("seed", range(3))
def test_token_limit_that_is_half_of_what_was_said_is_found_out(seed: int) -> None:
    world = World(Limits(tpm=120_000), Provider(tpm=60_000), seed, size=pack, reserve=1.3)
    world.run(1500)
    used = sum(o.tokens or 0 for at, _, o in world.ended if o.kind == "ok" and at >= 300)
    assert world.share_of_429s(since=300) <= 0.03
    assert used >= 0.95 * 60_000 * 1200 / 60


def test_rate_found_follows_a_limit_that_is_raised() -> None:
    provider = Provider(rpm=60)
    world = World(Limits(max_concurrency=100), provider, seed=1)
    world.run(300)
    raised = Provider(rpm=240)
    provider.requests = raised.requests
    world.run(300)
    assert world.count("ok", since=500) >= 0.9 * 240 * 100 / 60


def test_share_of_the_limit_is_ours() -> None:
    world = World(Limits(rpm=600, share=0.5, max_concurrency=100), Provider(), seed=1)
    world.run(120)
    assert len(world.granted) == pytest.approx(300 + 300 * 2 * PACE, rel=0.02)


@settings(max_examples=200)
@given(
    rate=st.floats(0.01, 1000),
    burst=st.floats(1, 1000),
    seed=st.integers(0, 10**6),
)
def test_bucket_never_gives_more_than_capacity_and_refill(
    rate: float, burst: float, seed: int
) -> None:
    rng = random.Random(seed)
    capacity = capacity_for(rate, burst)
    assert 0 < capacity <= burst
    bucket, now, taken = TokenBucket(rate, capacity, 0.0), 0.0, 0.0
    for _ in range(50):
        amount = rng.uniform(0, capacity)
        now = bucket.ready_at(amount, now) if rng.random() < 0.7 else now + rng.expovariate(rate)
        if bucket.ready_at(amount, now) <= now:
            bucket.take(amount, now)
            taken += amount
        assert taken <= capacity + rate * now + rate * 1e-3


def test_request_above_the_bucket_goes_when_it_is_full_and_is_paid_off() -> None:
    limiter = Limiter(Limits(tpm=6000), 0.0)
    limiter.enqueue("huge", "fast", 20_000)
    limiter.enqueue("next", "fast", 100)
    assert [lease.id for lease in limiter.step(0.0).granted] == ["huge"]
    debt = 20_000 - capacity_for(100, 6000)
    wake_at = limiter.step(0.0).wake_at
    assert wake_at == pytest.approx((debt + 100) / (100 * PACE))
    assert [lease.id for lease in limiter.step(wake_at).granted] == ["next"]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 3000), st.floats(0, 2)), min_size=1, max_size=20))
def test_tokens_reserved_less_what_was_not_used_is_what_was_used(
    calls: list[tuple[int, float]],
) -> None:
    limiter = Limiter(Limits(tpm=60_000, max_concurrency=100), 0.0)
    for number, (tokens, _) in enumerate(calls):
        limiter.enqueue(str(number), "fast", tokens)
    used = 0
    while granted := limiter.step(0.0).granted:
        for lease in granted:
            actual = round(lease.tokens * calls[int(lease.id)][1])
            used += actual
            limiter.settle(lease.id, Outcome("ok", tokens=actual), 0.0)
    left = int(capacity_for(1000, 60_000)) - used
    if left < 2:
        return
    limiter.enqueue("all of it", "fast", left)
    limiter.enqueue("one too many", "fast", 2)
    assert [lease.id for lease in limiter.step(0.0).granted] == ["all of it"]


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (Outcome("ok", tokens=400), 600),
        (Outcome("ok"), 0),
        (Outcome("timed_out"), 0),
        (Outcome("unavailable"), 1000),
        (Outcome("rejected"), 1000),
        (Outcome("unsent"), 1000),
    ],
)
def test_tokens_come_back_where_the_provider_did_not_work(outcome: Outcome, left: int) -> None:
    limiter = Limiter(Limits(tpm=1005), 0.0)  # a bucket of 1,000
    limiter.enqueue("first", "fast", 1000)
    limiter.step(0.0)
    limiter.settle("first", outcome, 0.0)
    limiter.enqueue("what is left", "fast", left)
    limiter.enqueue("more", "fast", 2)
    assert [lease.id for lease in limiter.step(0.0).granted] == ["what is left"]


def test_tokens_of_a_refused_request_come_back() -> None:
    limiter = Limiter(Limits(tpm=1005), 0.0)
    limiter.enqueue("first", "fast", 1000)
    limiter.step(0.0)
    limiter.settle("first", Outcome("rate_limited", retry_after=1.0), 0.0)
    limiter.enqueue("as many", "fast", 1000)
    assert limiter.step(0.0).wake_at < 3.0


def test_only_an_unsent_request_does_not_count() -> None:
    limiter = Limiter(Limits(rpm=60, burst=1), 0.0)
    limiter.enqueue("a", "fast", 1)
    limiter.step(0.0)
    limiter.settle("a", Outcome("unsent"), 0.0)
    limiter.enqueue("b", "fast", 1)
    assert limiter.step(0.0).granted
    limiter.settle("b", Outcome("unavailable"), 0.0)
    limiter.enqueue("c", "fast", 1)
    decided = limiter.step(0.0)
    assert not decided.granted
    assert decided.wake_at == pytest.approx(1 / PACE)


def test_grants_after_a_pause_are_spread() -> None:
    world = World(Limits(max_concurrency=50), Provider(rpm=60, burst=30), seed=3)
    world.run(100)
    refused = [at for at, _, outcome in world.ended if outcome.kind == "rate_limited"]
    later = [lease.granted_at for lease in world.granted if lease.granted_at > refused[-1]]
    assert len(later) > 5
    assert min(second - first for first, second in pairwise(later)) > 0.4


class WindowedProvider(Provider):
    """Sixty requests in every full minute of its own clock, instead of a bucket."""

    minute, taken = -1, 0

    def answer(self, tokens: int, now: float, rng: random.Random) -> tuple[Outcome, float]:
        if self.minute != now // 60:
            self.minute, self.taken = int(now // 60), 0
        if self.taken >= 60:
            return Outcome("rate_limited", retry_after=60 - now % 60), 0.05
        self.taken += 1
        return Outcome("ok", tokens=tokens), rng.uniform(*self.latency)


@pytest.mark.parametrize("limits", [Limits(), Limits(rpm=60), Limits(rpm=60, burst=1)])
def test_windows_instead_of_buckets_are_used_up_without_storms(limits: Limits) -> None:
    world = World(limits, WindowedProvider(), seed=1)
    world.run(900)
    assert world.share_of_429s(since=200) <= 0.03
    assert world.count("ok", since=300) >= 0.95 * 600


class OutOfOrder(Provider):
    """Refuses everything from second 30 to 150, whatever the rate."""

    def answer(self, tokens: int, now: float, rng: random.Random) -> tuple[Outcome, float]:
        if 30 <= now < 150:
            return Outcome("rate_limited", retry_after=1 if self.retry_after else None), 0.05
        return super().answer(tokens, now, rng)


@pytest.mark.parametrize("retry_after", [True, False])
def test_two_minutes_of_429s_leave_no_crawl_behind(retry_after: bool) -> None:
    world = World(Limits(rpm=60), OutOfOrder(rpm=60, retry_after=retry_after), seed=1)
    world.run(300)
    assert world.count("rate_limited") <= 20
    assert world.count("ok", since=240) >= 0.9 * 60


def test_one_429_in_a_quiet_hour_leaves_no_crawl_behind() -> None:
    limiter = Limiter(Limits(), 0.0)
    limiter.enqueue("lonely", "online", 1)
    limiter.step(0.0)
    limiter.settle("lonely", Outcome("rate_limited", retry_after=1.0), 0.5)
    rpm = limiter.stats(0.5).rpm
    assert rpm is not None
    assert rpm >= 45


def test_permits_given_back_unused_do_not_blur_the_measured_rate() -> None:
    class Hesitant(World):
        """Every other permit comes back unused after a while."""

        def _arrive(self, lease: Lease) -> None:
            if int(lease.id) % 2:
                super()._arrive(lease)
            else:
                self._at(self.now + 0.5, lambda: self._end(lease, Outcome("unsent"), False))

    world = Hesitant(Limits(), Provider(rpm=60), seed=1)
    world.run(900)
    assert world.share_of_429s(since=300) <= 0.03
    assert world.count("ok", since=300) >= 0.9 * 600
