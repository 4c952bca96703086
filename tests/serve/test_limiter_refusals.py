"""What a 429, a Retry-After and the x-ratelimit headers do."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.limiter import Lease, Limiter, Limits, Outcome
from serve.ask.ratelimit_headers import quota


def flying(limits: Limits, number: int, now: float = 0.0) -> tuple[Limiter, list[Lease]]:
    """A limiter with `number` calls in flight and as many tickets waiting."""
    limiter = Limiter(limits, now)
    for ticket in range(2 * number):
        limiter.enqueue(str(ticket), "fast", 100)
    leases = list(limiter.step(now).granted)
    assert len(leases) == number
    return limiter, leases


def headers(what: str, limit: str = "", remaining: str = "", reset: str = "") -> dict[str, str]:
    given = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"x-ratelimit-{name}-{what}": value for name, value in given.items() if value}


@pytest.mark.parametrize("seconds", [0.5, 1.0, 7.0, 599.0])
@pytest.mark.parametrize("limits", [Limits(), Limits(rpm=600), Limits(tpm=100_000)])
def test_retry_after_is_waited_to_the_second(seconds: float, limits: Limits) -> None:
    limiter, leases = flying(limits, 5)
    for lease in leases:
        limiter.settle(lease.id, Outcome("rate_limited", retry_after=seconds), 2.0)
    assert not limiter.step(2.0).granted
    assert limiter.stats(2.0).paused == seconds
    assert not limiter.step(2.0 + seconds - 1e-6).granted
    wake_at = limiter.step(2.0).wake_at
    assert wake_at >= 2.0 + seconds
    granted_at: list[float] = []
    while len(granted_at) < 5:
        granted_at += [lease.granted_at for lease in limiter.step(wake_at).granted]
        wake_at = limiter.step(wake_at).wake_at
    gaps = [second - first for first, second in pairwise(granted_at)]
    assert min(gaps) > 0.1, "paced after the pause, not all at once"


def test_longer_retry_after_of_a_call_in_flight_extends_the_pause() -> None:
    limiter, leases = flying(Limits(), 5)
    limiter.settle(leases[0].id, Outcome("rate_limited", retry_after=2.0), 1.0)
    limiter.settle(leases[1].id, Outcome("rate_limited", retry_after=10.0), 1.5)
    limiter.settle(leases[2].id, Outcome("rate_limited", retry_after=1.0), 1.6)
    assert not limiter.step(11.49).granted


def test_503_with_retry_after_is_waited_for_too() -> None:
    limiter, leases = flying(Limits(), 5)
    limiter.settle(leases[0].id, Outcome("unavailable", retry_after=4.0, status=503), 1.0)
    for lease in leases[1:]:
        limiter.settle(lease.id, Outcome("ok"), 2.0)
    assert not limiter.step(4.99).granted
    assert limiter.step(5.0).granted


def test_without_retry_after_the_pause_doubles_to_a_minute_until_a_success() -> None:
    limiter, leases = flying(Limits(), 5)
    for lease in leases[1:]:
        limiter.settle(lease.id, Outcome("unsent"), 0.0)
    lease, now, pauses = leases[0], 0.0, []
    for number in range(9):
        limiter.settle(lease.id, Outcome("rate_limited"), now)
        pauses.append(limiter.stats(now).paused)
        limiter.enqueue(f"again {number}", "fast", 1)
        now = limiter.step(now).wake_at
        lease = limiter.step(now).granted[0]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    limiter.settle(lease.id, Outcome("ok"), now)
    limiter.enqueue("good again", "fast", 1)
    lease = limiter.step(now + 100).granted[0]
    limiter.settle(lease.id, Outcome("rate_limited"), now + 101)
    assert limiter.stats(now + 101).paused == 1


def test_calls_refused_together_are_one_refusal() -> None:
    limiter, leases = flying(Limits(rpm=600), 5)
    limiter.settle(leases[0].id, Outcome("rate_limited"), 1.0)
    rpm = limiter.stats(1.0).rpm
    for lease in leases[1:]:
        limiter.settle(lease.id, Outcome("rate_limited"), 1.1)
    assert limiter.stats(1.1).rpm == rpm
    assert limiter.stats(1.0).paused == 1.0
    assert limiter.stats(1.0).rate_limited == 5


def test_429_lowers_the_rate_and_not_the_concurrency() -> None:
    limiter, leases = flying(Limits(rpm=600), 5)
    before = limiter.stats(0.0)
    assert before.rpm == pytest.approx(588)
    assert before.rpm_found is None
    limiter.settle(leases[0].id, Outcome("rate_limited", retry_after=0.0), 1.0)
    after = limiter.stats(1.0)
    assert after.rpm == after.rpm_found
    assert after.rpm is not None
    assert after.rpm <= 0.8 * 588
    assert after.concurrency == before.concurrency


def test_rate_recovers_by_five_percent_in_ten_quiet_seconds() -> None:
    limiter, leases = flying(Limits(), 5)
    for lease in leases:
        limiter.settle(lease.id, Outcome("rate_limited", retry_after=0.0), 1.0)
    found = limiter.stats(1.0).rpm_found
    assert found
    now, until, number = 1.0, 11.0, 0
    while now < until:
        limiter.enqueue(f"more {number}", "fast", 1)
        number += 1
        for lease in limiter.step(now).granted:
            limiter.settle(lease.id, Outcome("ok"), now)
        now = min(limiter.step(now).wake_at, until)
    recovered = limiter.stats(now).rpm_found
    assert recovered
    assert recovered / found == pytest.approx(1.05, abs=0.01)


def test_configured_limit_is_never_exceeded_by_what_was_found() -> None:
    limiter, leases = flying(Limits(rpm=60), 5)
    limiter.settle(leases[0].id, Outcome("rate_limited", retry_after=0.0), 1.0)
    now = 1.0
    for number in range(400):
        limiter.enqueue(f"more {number}", "fast", 1)
        now = max(now, limiter.step(now).wake_at)
        for lease in limiter.step(now).granted:
            limiter.settle(lease.id, Outcome("ok"), now)
        stats = limiter.stats(now)
        assert stats.rpm is not None
        assert stats.rpm <= 60 * 0.98 + 1e-9
    assert stats.rpm_found is None, "and forgotten where the configured limit holds again"


def test_limit_told_by_header_holds_when_none_is_configured() -> None:
    limiter, leases = flying(Limits(max_concurrency=100), 5)
    told = headers("requests", limit="600", remaining="595") | headers("tokens", limit="60000")
    limiter.settle(leases[0].id, Outcome("ok", tokens=100, headers=told), 1.0)
    assert limiter.stats(1.0).rpm == pytest.approx(588)


def test_limit_told_by_header_does_not_replace_a_configured_one() -> None:
    limiter, leases = flying(Limits(rpm=60), 5)
    told = headers("requests", limit="600", remaining="595")
    limiter.settle(leases[0].id, Outcome("ok", tokens=100, headers=told), 1.0)
    assert limiter.stats(1.0).rpm == pytest.approx(58.8)


def test_less_remaining_than_we_thought_is_believed() -> None:
    limiter, leases = flying(Limits(rpm=60, max_concurrency=100), 5)
    told = headers("requests", limit="60", remaining="3", reset="57s")
    for lease in leases:
        limiter.settle(lease.id, Outcome("ok", headers=told), 1.0)
    granted = limiter.step(1.0).granted
    assert 3 <= len(granted) <= 4


def test_more_remaining_than_we_thought_is_not() -> None:
    limiter, leases = flying(Limits(rpm=60, burst=5), 4)
    told = headers("requests", limit="60", remaining="59")
    for lease in leases:
        limiter.settle(lease.id, Outcome("ok", headers=told), 0.0)
    assert not limiter.step(0.0).granted


def test_nothing_remaining_of_tokens_is_believed() -> None:
    limiter, leases = flying(Limits(tpm=60_000), 5)
    told = headers("tokens", limit="60000", remaining="0", reset="1m0s")
    limiter.settle(leases[0].id, Outcome("ok", headers=told), 1.0)
    assert limiter.step(1.0).wake_at == pytest.approx(1.0 + 99 / 980, rel=0.01)


def test_nothing_remaining_in_a_window_that_ends_is_a_pause_until_then() -> None:
    limiter, leases = flying(Limits(rpm=60), 5)
    told = headers("requests", limit="60", remaining="0", reset="25s")
    limiter.settle(leases[0].id, Outcome("ok", headers=told), 1.0)
    assert not limiter.step(25.9).granted
    assert limiter.step(26.0).granted


def test_nothing_remaining_in_a_bucket_that_fills_is_no_pause() -> None:
    """OpenAI's reset is the time until the whole bucket is full, not until the next request."""
    limiter, leases = flying(Limits(rpm=60), 5)
    told = headers("requests", limit="60", remaining="0", reset="1m0s")
    limiter.settle(leases[0].id, Outcome("ok", headers=told), 1.0)
    assert limiter.stats(1.0).paused == 0
    assert limiter.step(1.0 + 1 / 0.98).granted


def test_nothing_remaining_of_an_unknown_limit_is_a_pause_until_the_reset() -> None:
    limiter, leases = flying(Limits(), 5)
    told = headers("requests", remaining="0", reset="6m0s")
    limiter.settle(leases[0].id, Outcome("ok", headers=told), 1.0)
    assert limiter.stats(1.0).paused == 360


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("7.66s", 7.66),
        ("1h2m3.5s", 3723.5),
        ("12", 12.0),
        ("0", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("5 s", None),
        ("1790000000", None),
        ("2026-01-01T00:00:00Z", None),
    ],
)
def test_reset_is_read_as_providers_write_it(text: str, seconds: float | None) -> None:
    assert quota(headers("requests", reset=text), "requests").reset == seconds


@given(st.text(), st.text(), st.text())
def test_headers_that_make_no_sense_are_ignored(limit: str, remaining: str, reset: str) -> None:
    limiter, leases = flying(Limits(), 5)
    nonsense = headers("requests", limit, remaining, reset)
    limiter.settle(leases[0].id, Outcome("ok", headers=nonsense), 1.0)
    limiter.step(1.0)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e9", "٣", "0x10", "1_000"])
def test_number_that_is_none_is_ignored(value: str) -> None:
    assert quota(headers("tokens", remaining=value), "tokens").remaining is None
