"""What the benchmark of pack sizes compares with."""

from __future__ import annotations

from job.estimates.kept import RunEstimates
from scripts.benchmarks.pack_size import SETTINGS, bars_of, best_fixed, most_share
from scripts.benchmarks.pack_size_asking import Asked


def took(minutes: float, again: int, unanswered: int = 0) -> Asked:
    return Asked(minutes, 10, 1000, 1000, again, unanswered, RunEstimates("run", 0.0), {})


# Of 1,000 rows, 22 may be lost: 1.5 % and two deviations.


def test_the_best_fixed_size_is_the_fastest_that_loses_no_more_than_is_allowed() -> None:
    assert 0.022 < most_share(1000) < 0.023
    assert most_share(3000) < 0.0195
    fixed = [took(9.0, 1), took(4.0, 22), took(3.0, 23)]
    assert best_fixed(fixed) is fixed[1]
    assert best_fixed(fixed[2:]) is fixed[2]


def test_a_run_slower_than_that_by_more_than_a_tenth_fails() -> None:
    fixed = [took(9.0, 1), took(4.0, 8), took(3.0, 23)]
    good, slow = took(4.4, 9), took(4.5, 9)
    assert all(bar.holds for bar in bars_of(SETTINGS[2], fixed, (good, good)))
    bars = bars_of(SETTINGS[2], fixed, (slow, good))
    assert [bar.holds for bar in bars] == [True, False, True, True, True]
    lossy = bars_of(SETTINGS[2], fixed, (good, took(3.0, 23)))
    assert [bar.holds for bar in lossy] == [True, True, True, True, False]
    lost = bars_of(SETTINGS[2], fixed, (good, took(4.0, 9, unanswered=1)))
    assert not lost[0].holds
