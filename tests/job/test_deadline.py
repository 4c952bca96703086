"""What is set aside before a deadline, and whether one more call fits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.ration.deadline import (
    LEAST_NAMING_SECONDS,
    NAMING_SECONDS,
    SPARE,
    Closing,
    Deadline,
    TimeLeft,
    closing_seconds,
)

AT = datetime(2026, 3, 14, 8, 0, tzinfo=UTC)


def test_the_asking_ends_before_the_deadline_by_what_comes_after_it() -> None:
    reserve = SPARE * (closing_seconds(3000) + NAMING_SECONDS)
    assert Deadline(AT).asking_ends(3000) == pytest.approx(AT.timestamp() - reserve)


def test_more_records_need_more_time_to_close() -> None:
    assert Deadline(AT).asking_ends(1_000_000) < Deadline(AT).asking_ends(1000)


def test_what_earlier_runs_took_counts_and_the_slowest_of_them_most() -> None:
    quick = Closing().seen(1000, 0.5 * closing_seconds(1000) + 3, 3)
    assert quick.needed(2000) == pytest.approx(SPARE * 0.5 * closing_seconds(2000))
    assert quick.naming_needed == SPARE * 3
    both = quick.seen(10, 4 * closing_seconds(10), 0)
    assert both.needed(2000) == pytest.approx(SPARE * 4 * closing_seconds(2000))
    assert both.naming == (3,)


@given(st.lists(st.tuples(st.integers(0, 10**7), st.floats(0, 1e6)), max_size=9))
def test_what_was_learned_is_read_as_it_was_kept_and_stays_bounded(
    runs: list[tuple[int, float]],
) -> None:
    closing = Closing()
    for records, seconds in runs:
        closing = closing.seen(records, seconds, seconds / 2)
    assert Closing.decode(closing.encode()) == closing
    assert all(0.2 <= slowness <= 20 for slowness in closing.slowness)
    assert len(closing.slowness) <= 5


@pytest.mark.parametrize(
    "damaged",
    [None, b"", b"[]", b"{", b'{"slowness":["x"]}', b'{"slowness":3}', b'{"naming":[-1]}', b"7"],
)
def test_what_cannot_be_read_is_as_nothing(damaged: bytes | None) -> None:
    assert Closing.decode(damaged) == Closing()


def test_names_are_left_to_code_when_the_report_would_be_late() -> None:
    deadline, late = Deadline(AT), AT.timestamp()
    seconds = deadline.naming_seconds(100, late - 60)
    assert seconds is not None
    assert LEAST_NAMING_SECONDS < seconds < 60
    assert deadline.naming_seconds(100, late - 3) is None
    assert deadline.naming_seconds(100, late + 3) is None


def test_without_a_deadline_every_call_fits() -> None:
    left = TimeLeft()
    assert left.allows("fast", 1e9, 0)
    assert not left.over(1e18)
    assert left.seconds(0) is None


def test_a_call_fits_if_one_like_it_would_end_in_time() -> None:
    left = TimeLeft(until=100)
    assert left.allows("fast", 10, 90)
    assert not left.allows("fast", 10, 90.1)
    left.observe("fast", 4)
    left.observe("fast", 2)
    assert left.allows("fast", 10, 96)
    assert not left.allows("fast", 10, 96.1)
    # the other lane has seen none yet
    assert not left.allows("slow", 10, 96)
    assert left.allows("slow", 3, 96)


def test_what_is_asked_again_is_judged_by_itself() -> None:
    left = TimeLeft(until=100)
    left.observe("slow", 60)
    left.observe("retry", 60)
    assert left.allows("retry", 1, 99)
    assert not left.allows("retry", 1, 99.1)


def test_a_long_call_is_forgotten_after_a_while() -> None:
    left = TimeLeft(until=100)
    for seconds in (50, *[2] * 16):
        left.observe("fast", seconds)
    assert left.allows("fast", 60, 98)


def test_the_time_left_is_never_negative() -> None:
    left = TimeLeft(until=100)
    assert (left.seconds(40), left.over(40)) == (60, False)
    assert (left.seconds(100), left.over(100)) == (0, True)
    assert left.seconds(300) == 0
