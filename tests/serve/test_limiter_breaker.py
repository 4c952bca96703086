"""When a provider fails, it is left alone, then tried with one call."""

from __future__ import annotations

import itertools

import pytest

from serve.ask.breaker import PROBE_SECONDS, Breaker
from serve.ask.limiter import Limiter, Limits, Outcome, OutcomeKind
from tests.serve.limiter_world import Provider, World


class Calls:
    """A limiter with many callers waiting, to end calls by hand."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limiter = Limiter(limits or Limits(), 0.0)
        self.now = 0.0
        self.flying: list[str] = []
        self._ids = itertools.count()

    def fly(self) -> int:
        """Let all go who may; how many did."""
        self.limiter.enqueue(f"call {next(self._ids)}", "fast", 1)
        total = 0
        while granted := self.limiter.step(self.now).granted:
            self.flying.extend(lease.id for lease in granted)
            total += len(granted)
            for _ in granted:
                self.limiter.enqueue(f"call {next(self._ids)}", "fast", 1)
        return total

    def end(self, kind: OutcomeKind, call: str | None = None) -> bool:
        """The longest-flying call, or `call`, ends; whether the breaker had to do with it."""
        call = call or self.flying[0]
        self.flying.remove(call)
        return self.limiter.settle(call, Outcome(kind), self.now).breaker_open

    def fail(self, times: int) -> None:
        for _ in range(times):
            self.fly()
            self.end("unavailable")

    @property
    def state(self) -> str:
        return self.limiter.stats(self.now).breaker


@pytest.mark.parametrize("kind", ["unavailable", "timed_out"])
def test_opens_at_five_failures_in_a_row_and_not_before(kind: OutcomeKind) -> None:
    calls = Calls()
    for _ in range(4):
        calls.fly()
        assert not calls.end(kind)
        assert calls.state == "closed"
    calls.fly()
    assert calls.end(kind), "the failure that opens it uses no attempt"
    assert calls.state == "open"


def test_opens_at_half_of_the_last_twenty_once_ten_are_seen() -> None:
    calls = Calls()
    for kind in ("ok", "unavailable") * 4:
        calls.fly()
        calls.end(kind)
    calls.fly()
    calls.end("ok")
    assert calls.state == "closed"
    calls.fly()
    calls.end("unavailable")
    assert calls.state == "open"


def test_a_third_of_the_calls_failing_does_not_open_it() -> None:
    calls = Calls()
    for kind in ("ok", "ok", "unavailable") * 30:
        calls.fly()
        calls.end(kind)
        assert calls.state == "closed"


def test_opens_at_ten_429s_in_a_row() -> None:
    calls = Calls()
    for number in range(10):
        calls.now += 61
        calls.fly()
        assert calls.state == "closed", number
        calls.end("rate_limited", calls.flying[-1])
    assert calls.state == "open"


def test_a_success_between_429s_starts_the_count_again() -> None:
    calls = Calls()
    for number in range(40):
        calls.now += 61
        calls.fly()
        calls.end("ok" if number % 9 == 8 else "rate_limited", calls.flying[-1])
        assert calls.state == "closed"


def test_what_says_nothing_of_health_neither_opens_nor_hides_failures() -> None:
    calls = Calls()
    for kind in ("unavailable", "rejected", "unavailable", "unsent", "unavailable"):
        calls.fly()
        calls.end(kind)
    calls.fail(2)
    assert calls.state == "open"


def test_stays_open_five_seconds_doubling_to_sixty_and_closes_on_a_good_probe() -> None:
    calls = Calls()
    calls.fail(5)
    calls.flying.clear()
    for seconds in (5, 10, 20, 40, 60, 60):
        open_until = calls.now + seconds
        calls.now = open_until - 0.001
        assert calls.fly() == 0
        assert calls.state == "open"
        calls.now = open_until
        assert calls.state == "half_open"
        assert calls.fly() == 1, "one probe"
        assert calls.fly() == 0
        calls.end("unavailable")
    calls.now += 60
    calls.fly()
    calls.end("ok")
    assert calls.state == "closed"
    calls.fail(5)
    calls.now += 5
    assert calls.state == "half_open", "a good probe resets the doubling"


def test_work_goes_on_at_once_when_the_probe_is_good() -> None:
    calls = Calls(Limits(max_concurrency=20))
    calls.fly()
    for _ in range(5):
        calls.end("timed_out", calls.flying[0])
    calls.now += 5
    assert calls.fly() == 1
    calls.end("ok")
    assert calls.fly() >= 2


def test_calls_that_hang_since_the_outage_do_not_hold_back_what_comes_after() -> None:
    calls = Calls(Limits(max_concurrency=20))
    for _ in range(15):
        calls.fly()
        calls.end("ok")
    calls.fly()
    assert len(calls.flying) == 20
    for _ in range(5):
        calls.end("unavailable")
    assert len(calls.flying) == 15
    calls.now += 5
    assert calls.fly() == 1
    calls.end("ok", calls.flying[-1])
    assert calls.fly() == 5, "up to the cap of calls in flight, those that hang included"


def test_results_of_calls_begun_before_it_opened_do_not_move_it() -> None:
    calls = Calls(Limits(max_concurrency=20))
    for _ in range(15):
        calls.fly()
        calls.end("ok")
    calls.fly()
    old = calls.flying[5:]
    for _ in range(5):
        calls.end("unavailable")
    assert calls.state == "open"
    calls.end("ok", old[0])
    assert calls.state == "open"
    calls.now += 5
    calls.fly()
    probe = calls.flying[-1]
    calls.end("ok", old[1])
    assert calls.state == "half_open"
    assert calls.end("timed_out", old[2]), "an attempt that the outage swallowed is not used up"
    assert calls.state == "half_open"
    calls.end("ok", probe)
    assert calls.state == "closed"
    for call in old[3:]:
        assert calls.end("timed_out", call)
    assert calls.state == "closed"


@pytest.mark.parametrize("kind", ["rejected", "unsent"])
def test_probe_that_says_nothing_is_followed_by_another(kind: OutcomeKind) -> None:
    calls = Calls()
    calls.fail(5)
    calls.now += 5
    calls.fly()
    calls.end(kind, calls.flying[-1])
    assert calls.state == "half_open"
    assert calls.fly() == 1


def test_probe_that_hangs_is_joined_by_another() -> None:
    calls = Calls()
    calls.fail(5)
    calls.now += 5
    calls.fly()
    hanging = calls.flying[-1]
    calls.now += PROBE_SECONDS
    assert calls.fly() == 1
    calls.end("ok", calls.flying[-1])
    assert calls.state == "closed"
    assert not calls.end("timed_out", hanging), "one failure of the time after"
    assert calls.state == "closed"


def test_429_for_a_probe_opens_it_again() -> None:
    breaker = Breaker()
    for call in range(1, 6):
        breaker.record(call, "unavailable", 5, now=0.0)
    breaker.granted(5.0)
    breaker.record(6, "rate_limited", 6, now=5.0)
    assert breaker.state(5.0) == "open"
    assert breaker.admits_at(5.0) == 15.0


def test_online_is_turned_away_while_it_is_open_and_batch_waits() -> None:
    limiter = Limiter(Limits(max_concurrency=5), 0.0)
    for number in range(5):
        limiter.enqueue(f"call {number}", "fast", 1)
    limiter.step(0.0)
    limiter.enqueue("waits already", "online", 1)
    limiter.enqueue("batch", "fast", 1)
    limiter.step(0.0)
    for number in range(5):
        limiter.settle(f"call {number}", Outcome("unavailable"), 0.0)
    decided = limiter.step(0.0)
    assert decided.refused == {"waits already": 5.0}
    assert decided.wake_at == 5.0
    limiter.enqueue("comes later", "online", 1)
    assert limiter.step(2.0).refused == {"comes later": 3.0}
    assert [lease.id for lease in limiter.step(5.0).granted] == ["batch"]
    limiter.enqueue("while the probe flies", "online", 1)
    assert "while the probe flies" in limiter.step(6.0).refused


def test_online_may_be_the_probe() -> None:
    calls = Calls()
    calls.fail(5)
    limiter = calls.limiter
    limiter.enqueue("online", "online", 1)
    assert [lease.id for lease in limiter.step(5.0).granted] == ["online"]


@pytest.mark.parametrize("seed", range(5))
def test_after_an_outage_the_work_is_done_at_the_pace_of_the_limit(seed: int) -> None:
    world = World(Limits(rpm=60), Provider(rpm=60, outage=(3.0, 23.0)), seed)
    world.run(40)
    before = world.count("ok")
    assert world.count("unavailable") < 15
    world.run(20)
    assert world.count("ok") - before >= 40, "what was saved up during the outage goes first"
    assert world.count("rate_limited") == 0
