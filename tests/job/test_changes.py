"""What became of themes since earlier runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.history.changes import (
    Baseline,
    PastRun,
    PastTheme,
    before,
    changes,
    day_of,
    gone,
    pair,
    under_one_id,
    why_not_comparable,
)
from job.themes.table import EarlierTheme

FACTS = {
    "stopped": None,
    "language": "en",
    "model": "m",
    "instructions": "i",
    "version": "1",
    "settings": {"sample": None},
}


def past(day: str, days: int = 1, **records: int) -> PastRun:
    """A run of that day with themes by id and records; each was there for `days` days by then."""
    themes = tuple(
        PastTheme(f"t-{name}", name, "high", "operation", n, days, None)
        for name, n in records.items()
    )
    return PastRun(f"../{day}", day, 100, sum(records.values()), "m", themes)


def became(now: dict[str, int], *runs: PastRun, day: str = "2026-03-10") -> dict[str, str]:
    baseline = Baseline("auto", runs)
    found = changes(baseline, {f"t-{name}": n for name, n in now.items()}, day)
    return {id.removeprefix("t-"): change.status for id, change in found.items()}


@pytest.mark.parametrize(
    ("then", "now", "status"),
    [
        (20, 20, "same"),
        (20, 26, "same"),
        (20, 27, "worse"),
        (20, 14, "same"),
        (20, 13, "better"),
        (2, 7, "same"),
        (2, 8, "worse"),
        (1000, 1300, "same"),
        (1000, 1301, "worse"),
    ],
)
def test_worse_and_better_are_changes_beyond_30_percent_and_5_records(
    then: int, now: int, status: str
) -> None:
    assert became({"a": now}, past("2026-03-09", a=then)) == {"a": status}


def test_one_tripled_one_gone_one_new() -> None:
    runs = (past("2026-03-09", pay=20, login=12, disk=9),)
    assert became({"pay": 60, "login": 12, "mail": 8}, *runs) == {
        "pay": "worse",
        "login": "same",
        "mail": "new",
    }
    (lost,) = gone(Baseline("run", runs), ["t-pay", "t-login", "t-mail"])
    assert (lost.theme.id, lost.before, lost.last_seen) == ("t-disk", 9, "2026-03-09")


def test_of_several_runs_the_median_counts_and_a_run_without_the_theme_as_none() -> None:
    runs = (past("d3", a=100), past("d2", a=10, b=9, c=1), past("d1", a=12, b=9))
    found = changes(Baseline("auto", runs), {"t-a": 12, "t-b": 9, "t-c": 6}, None)
    assert [found[f"t-{name}"].before for name in "abc"] == [12, 9, 0]
    assert [found[f"t-{name}"].status for name in "abc"] == ["same", "same", "worse"]
    assert [g.theme.id for g in gone(Baseline("auto", runs), [])] == ["t-a", "t-b"]
    assert before(Baseline("auto", runs[:2]), "problems") == 60


@pytest.mark.parametrize(
    ("runs", "days", "since"),
    [
        ((past("2026-03-09", a=1),), 2, "2026-03-09"),
        ((past("2026-03-09", 8, a=1),), 9, "2026-03-09"),
        ((past("2026-03-09", a=1), past("2026-03-08", a=1)), 3, "2026-03-08"),
        ((past("2026-03-09", a=1), past("2026-03-08", b=1)), 2, "2026-03-09"),
        ((past("2026-03-09", b=1), past("2026-03-08", a=1)), 1, "2026-03-10"),
        ((past("2026-03-10", a=1),), 1, "2026-03-10"),
        ((past("2026-03-10", a=1), past("2026-03-09", a=1)), 2, "2026-03-09"),
    ],
)
def test_days_in_a_row(runs: tuple[PastRun, ...], days: int, since: str) -> None:
    change = changes(Baseline("auto", runs), {"t-a": 1}, "2026-03-10")["t-a"]
    assert (change.days, change.since) == (days, since)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ({}, None),
        ({"model": "other"}, "model"),
        ({"instructions": "other"}, "instructions"),
        ({"language": "zh", "instructions": "other"}, "language"),
        ({"settings": {"sample": 10}}, "sample"),
        ({"stopped": {"reason": "quota"}, "model": "other"}, "partial"),
    ],
)
def test_what_cannot_be_compared(then: dict[str, Any], reason: str | None) -> None:
    assert why_not_comparable(FACTS, FACTS | then) == reason


def test_the_built_in_analyst_compares_with_its_own_version() -> None:
    rules = FACTS | {"model": "extractive"}
    assert why_not_comparable(rules, rules | {"instructions": "other"}) is None
    assert why_not_comparable(rules, rules | {"version": "2"}) == "instructions"
    assert why_not_comparable(FACTS, FACTS | {"version": "2"}) is None


def theme(id: str, *axis: float, space: str = "s") -> EarlierTheme:
    vector = np.array(axis, dtype=np.float32)
    return EarlierTheme(id, False, vector / np.linalg.norm(vector), 1.0, space)


def test_themes_are_paired_by_id_else_by_likeness_each_at_most_once() -> None:
    ours = [theme("t-1", 1, 0, 0), theme("t-2", 0, 1, 0), theme("t-3", 0, 0, 1)]
    theirs = [theme("t-1", 0, 1, 0), theme("t-8", 0, 1, 0.1), theme("t-9", 0, 1, 0.2)]
    assert pair(ours, theirs) == {"t-1": "t-1", "t-8": "t-2"}
    assert pair(ours, [theme("t-8", 0, 1, 0, space="another")]) == {}


def test_a_theme_that_is_gone_has_the_id_of_the_latest_run_in_all_of_them() -> None:
    tables = [[theme("t-new", 1, 0)], [theme("t-old", 1, 0.1)]]
    runs = [past("d2", new=5), past("d1", old=7)]
    renamed = under_one_id([theme("t-x", 0, 1)], list(zip(runs, tables, strict=True)))
    assert [[t.id for t in run.themes] for run in renamed] == [["t-new"], ["t-new"]]
    (lost,) = gone(Baseline("auto", renamed), ["t-x"])
    assert (lost.theme.id, lost.before) == ("t-new", 6)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 50)), min_size=1))
def test_the_same_day_again_changes_nothing(days: list[dict[str, int]]) -> None:
    """Whatever came before, a run equal to the median of equal runs is unchanged."""
    run = past("2026-03-09", **days[0])
    assert set(became(days[0], *[run] * len(days)).values()) <= {"same"}
    assert gone(Baseline("auto", (run,)), [f"t-{name}" for name in days[0]]) == []


@pytest.mark.parametrize(
    ("named", "days", "last", "day"),
    [
        ("2026-03-10", {"2026-03-11": 5}, None, "2026-03-10"),
        (None, {"1970-01-01": 1, "2026-03-11": 5}, "2026-03-12T00:01:00+08:00", "2026-03-11"),
        (None, {}, "2026-03-12T00:01:00+08:00", "2026-03-12"),
        (None, {}, None, None),
    ],
)
def test_the_day_of_a_run(
    named: str | None, days: dict[str, int], last: str | None, day: str | None
) -> None:
    assert day_of(named, days, last) == day
