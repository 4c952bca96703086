"""When a call is given up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from job.estimates.call_seconds import FLOOR_SECONDS, LONGEST_SECONDS, TRUST_FROM, CallSeconds
from job.estimates.moments import Line
from job.records import Lane

LANES = st.sampled_from(["fast", "slow"])


def seen(seconds: list[float], tokens: float = 5000, lane: Lane = "fast") -> CallSeconds:
    known = CallSeconds()
    for each in seconds:
        known.observe("feedback", lane, tokens, each)
    return known


def test_before_calls_were_seen_the_fixed_timeout_holds() -> None:
    assert CallSeconds().timeout("feedback", "fast", 5000, 400, False) == 15 + 400 / 20
    assert CallSeconds().timeout("feedback", "fast", 5000, 4000, False) == LONGEST_SECONDS
    assert CallSeconds().timeout("feedback", "slow", 5000, 4000, False) == 2 * LONGEST_SECONDS
    few = seen([1.0] * (TRUST_FROM - 1))
    assert few.timeout("feedback", "fast", 5000, 400, False) == 35.0


def test_the_hang_of_a_fast_provider_is_noticed_early() -> None:
    known = seen([1.5, 1.7, 1.9] * 10)
    assert known.timeout("feedback", "fast", 5000, 2000, False) < 7


def test_a_slow_provider_is_not_cut_off() -> None:
    known = seen([20.0, 25.0, 32.0] * 10)
    assert known.timeout("feedback", "fast", 5000, 400, False) == LONGEST_SECONDS


def test_records_that_were_given_up_on_get_the_fixed_timeout() -> None:
    known = seen([1.5] * 30)
    assert known.timeout("feedback", "fast", 5000, 400, True) == 35.0


def test_a_provider_that_slows_down_is_given_more_after_a_few_calls_in_vain() -> None:
    known = seen([2.0, 2.2] * 20)
    for _ in range(5):
        timeout = known.timeout("feedback", "fast", 5000, 400, False)
        known.observe("feedback", "fast", 5000, timeout)
    assert known.timeout("feedback", "fast", 5000, 400, False) > 12


def test_a_lane_that_was_not_seen_does_not_go_by_the_other() -> None:
    known = seen([1.5] * 30)
    assert known.timeout("feedback", "slow", 5000, 400, False) == 70.0


def test_a_second_run_begins_with_what_the_first_has_seen() -> None:
    line = Line()
    for _ in range(30):
        line = line.seen(5000, 1.5)
    known = CallSeconds(earlier={("feedback", "fast"): line})
    assert known.timeout("feedback", "fast", 5000, 2000, False) == FLOOR_SECONDS
    assert known.expected("feedback", "fast", 5000) == 1.5


@given(st.lists(st.floats(0.0, 500.0), max_size=40), LANES, st.floats(1, 1e5), st.integers(0, 9000))
def test_the_timeout_stays_between_the_floor_and_the_longest(
    seconds: list[float], lane: Lane, tokens: float, reserve: int
) -> None:
    timeout = seen(seconds, lane=lane).timeout("feedback", lane, tokens, reserve, False)
    assert FLOOR_SECONDS <= timeout <= (2 if lane == "slow" else 1) * LONGEST_SECONDS


@given(st.lists(st.floats(0.1, 19.0), min_size=TRUST_FROM, max_size=60))
def test_no_call_like_those_seen_is_cut_off_but_one_in_36(seconds: list[float]) -> None:
    timeout = seen(seconds).timeout("feedback", "fast", 5000, 400, False)
    assert sum(each > timeout for each in seconds) <= len(seconds) / 36 + 1
