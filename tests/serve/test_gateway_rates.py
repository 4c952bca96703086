"""The rates of a key: never more than agreed, and the wait that is told is the wait there is."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.rates import MINUTE, KeyRates

requests = st.one_of(st.none(), st.floats(0.5, 12))
tokens = st.one_of(st.none(), st.floats(50, 2_000))
pauses = st.one_of(st.just(0.0), st.floats(0, 30))
steps = st.lists(
    st.tuples(pauses, st.integers(0, 400), st.floats(0, 1.5)), min_size=20, max_size=40
)


@settings(max_examples=30)
@given(rpm=requests, tpm=tokens, steps=steps)
def test_no_span_of_time_has_more_than_a_minutes_worth_and_what_flows_in(
    rpm: float | None, tpm: float | None, steps: list[tuple[float, int, float]]
) -> None:
    now = 1_000.0
    rates = KeyRates(rpm, tpm, now)
    went: list[tuple[float, int]] = []
    for pause, tokens, _ in steps:
        now += pause
        if rates.wait(tokens, now) is None:
            rates.take(tokens, now)
            went.append((now, tokens))
    for first in range(len(went)):
        since = went[first][0]
        for last in range(first, len(went)):
            seconds = went[last][0] - since
            among = went[first : last + 1]
            if rpm is not None:
                assert len(among) <= max(rpm, 1) + rpm * seconds / MINUTE + 1e-3
            if tpm is not None:
                # More than a minute's worth at once goes when nothing is used, and is paid off.
                most = tpm + tpm * seconds / MINUTE + max(0, among[-1][1] - tpm)
                assert sum(tokens for _, tokens in among) <= most + 1e-3


@settings(max_examples=30)
@given(rpm=requests, tpm=tokens, steps=steps)
def test_who_waits_as_long_as_told_may_go_and_not_before(
    rpm: float | None, tpm: float | None, steps: list[tuple[float, int, float]]
) -> None:
    now = 0.0
    rates = KeyRates(rpm, tpm, now)
    for pause, tokens, share in steps:
        now += pause
        wait = rates.wait(tokens, now)
        if wait is not None:
            _, seconds = wait
            assert 0 < seconds < math.inf
            assert rates.wait(tokens, now + seconds * 0.99 - 1e-3) is not None
            now += seconds + 1e-6
            assert rates.wait(tokens, now) is None
        rates.take(tokens, now)
        rates.settle(tokens, int(tokens * share), now)


def test_tokens_that_were_not_used_come_back_and_more_than_expected_is_paid_off() -> None:
    rates = KeyRates(None, 600.0, 0.0)
    rates.take(600, 0.0)
    assert rates.wait(100, 0.0) == ("tokens", 10.0)
    rates.settle(600, 100, 0.0)
    assert rates.wait(500, 0.0) is None
    rates.take(100, 0.0)
    rates.settle(100, 700, 0.0)
    assert rates.wait(1, 0.0) == ("tokens", 20.1)


def test_what_was_used_stays_used_when_the_limit_changes() -> None:
    rates = KeyRates(60.0, None, 0.0)
    for _ in range(60):
        rates.take(1, 0.0)
    rates.adjust(120.0, 1_000.0, 0.0)
    assert rates.wait(1, 0.0) == ("requests", 0.5)
    rates.adjust(None, None, 0.0)
    assert rates.wait(10**9, 0.0) is None


def test_one_that_did_not_go_gives_back_all_it_took() -> None:
    rates = KeyRates(1.0, 100.0, 0.0)
    rates.take(100, 0.0)
    rates.give_back(100, 0.0)
    assert rates.wait(100, 0.0) is None
