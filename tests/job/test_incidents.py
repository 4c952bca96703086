"""Themes that broke out together, on made days."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from job.records import Result, results_to_table
from job.reduce.again import look_again, wanted
from job.reduce.counting import reduce_results
from job.reduce.incidents import Incident, find_incidents
from tests.job.report_run import NOON, issue, problem

Day = list[Result]
_numbers = iter(range(10**9))


def happened(theme: str, minute: float, **fields: Any) -> Result:
    """A problem record of `theme`, `minute` minutes after noon."""
    time = NOON + timedelta(minutes=minute)
    return problem(next(_numbers), issue(theme=theme), time=time, **fields)


def burst(theme: str, start: float, end: float, records: int, **fields: Any) -> Day:
    """Records of `theme` spread evenly from `start` to `end`, minutes after noon."""
    step = (end - start) / (records - 1)
    return [happened(theme, start + i * step, **fields) for i in range(records)]


def slow(theme: str, records: int = 120, **fields: Any) -> Day:
    """Records of `theme` all over the day."""
    return burst(theme, -700, 700, records, **fields)


def incidents(*parts: Day) -> list[Incident]:
    results = [result for part in parts for result in part]
    random.Random(1).shuffle(results)
    totals = reduce_results([results_to_table(results)])
    return find_incidents(totals.themes, totals.first, totals.last)


def test_three_themes_that_break_out_on_one_host_are_one_incident() -> None:
    (found,) = incidents(
        slow("t-noise", host="web-1"),
        burst("t-a", 0, 20, 60, host="web-1"),
        burst("t-b", 1, 18, 30, host="web-1", service="cart"),
        burst("t-c", 4, 22, 12, host="web-1", service="search"),
    )
    assert found.themes == ("t-a", "t-b", "t-c")
    assert found.places["host"] == ("web-1",)
    assert (found.first, found.last) == tuple(
        int((NOON + timedelta(minutes=m)).timestamp() * 1_000_000) for m in (0, 22)
    )
    assert found.began_within == 4


def test_two_causes_at_the_same_time_on_different_services_are_two() -> None:
    found = incidents(
        slow("t-noise", service="cart"),
        *(burst(f"t-cart-{n}", n, 20, 40, service="cart") for n in range(2)),
        *(burst(f"t-mail-{n}", n, 20, 30, service="mail") for n in range(2)),
    )
    assert [set(i.themes) for i in found] == [{"t-cart-0", "t-cart-1"}, {"t-mail-0", "t-mail-1"}]


def test_one_theme_alone_is_no_incident() -> None:
    day = slow("t-noise", service="cart"), burst("t-a", 0, 20, 60, service="cart")
    assert incidents(*day, burst("t-b", 0, 20, 60, service="mail")) == []


@pytest.mark.parametrize(
    "other",
    [
        slow("t-slow", host="web-1"),
        burst("t-hours", 0, 400, 60, host="web-1"),
        burst("t-later", 60, 80, 60, host="web-1"),
        burst("t-few", 0, 15, 4, host="web-1"),
        burst("t-elsewhere", 0, 20, 60, host="web-2"),
        burst("t-user", 0, 20, 60, kind="feedback"),
    ],
    ids=lambda day: day[0].issues[0].theme,
)
def test_what_is_slow_later_rare_or_elsewhere_is_no_member(other: Day) -> None:
    (found,) = incidents(
        slow("t-noise", host="web-9"),
        burst("t-a", 0, 20, 60, host="web-1"),
        burst("t-b", 2, 20, 60, host="web-1"),
        other,
    )
    assert set(found.themes) == {"t-a", "t-b"}


def test_a_theme_that_also_occurs_at_other_times_can_break_out() -> None:
    (found,) = incidents(
        [*burst("t-a", 0, 20, 90, service="cart"), *slow("t-a", 10, service="cart")],
        burst("t-b", 2, 20, 60, service="cart"),
    )
    assert set(found.themes) == {"t-a", "t-b"}
    assert (found.last - found.first) / 60e6 < 25


def test_a_log_that_names_no_place_is_one_place() -> None:
    here: dict[str, Any] = {"source": "a.log"}
    there: dict[str, Any] = {"source": "b.log"}
    (found,) = incidents(
        slow("t-noise", **there),
        burst("t-a", 0, 20, 60, **here),
        burst("t-b", 2, 20, 60, **here),
        burst("t-c", 2, 20, 60, **there),
    )
    assert set(found.themes) == {"t-a", "t-b"}
    assert found.places["source"] == ("a.log",)


def test_in_a_log_that_holds_nothing_else_nothing_breaks_out() -> None:
    assert incidents(burst("t-a", 0, 20, 60), burst("t-b", 0, 20, 60)) == []


def test_a_record_that_tells_of_two_members_counts_once() -> None:
    issues = issue(theme="t-a", event="disk 7 full"), issue(theme="t-b", event="write failed")
    both = [problem(n, *issues, time=NOON + timedelta(minutes=n), host="web-1") for n in range(20)]
    tables = [results_to_table([*both, *slow("t-noise", host="web-9")])]
    totals = reduce_results(tables)
    (found,) = find_incidents(totals.themes, totals.first, totals.last)
    assert set(found.themes) == {"t-a", "t-b"}
    seen = look_again(tables, wanted(totals))
    messages = {theme: names.top(9) for theme, names in seen.messages.items()}
    assert messages == {"t-a": [("disk … full", 20)]}


def test_records_without_a_time_are_no_incident() -> None:
    day = [problem(n, issue(theme=f"t-{n % 2}"), time=None) for n in range(40)]
    assert incidents(day) == []


def test_the_parts_of_a_day_give_the_incidents_of_the_whole() -> None:
    day = [*slow("t-noise"), *burst("t-a", 0, 20, 60), *burst("t-b", 2, 20, 60)]
    whole = reduce_results([results_to_table(day)])
    parts = reduce_results(results_to_table(day[n::3]) for n in range(3))
    assert find_incidents(parts.themes, parts.first, parts.last) == find_incidents(
        whole.themes, whole.first, whole.last
    )
