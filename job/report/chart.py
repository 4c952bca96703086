"""Problem records over time by severity, as bars.

Invariant: the counts of the bars add up to the problem records that have a time, and the number of
bars is bounded: the longer the period, the longer the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from job.records import SEVERITIES

MOST_HOURS = 72
MOST_DAYS = 92
MOST_MONTHS = 120

Unit = Literal["hour", "day", "month", "year"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One span of time; `parts` are (severity, records), the most severe first."""

    start: datetime
    records: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All bars in time order, the empty ones between them included (but for years)."""

    unit: Unit
    bars: tuple[Bar, ...]

    @property
    def peak(self) -> Bar:
        """The first of the highest bars."""
        return max(self.bars, key=lambda bar: bar.records)


def chart(period: Mapping[str, Any]) -> Chart | None:
    """The chart of the `period` of a report; None where no problem record has a time."""
    if not period["by_hour"]:
        return None
    zone = ZoneInfo(period["timezone"])
    first, last = (
        datetime.fromisoformat(period[end]).astimezone(zone) for end in ("first", "last")
    )
    unit = _unit(first, last)
    counts = {start: Counter[str]() for start in _starts(unit, first, last)}
    for row in period["by_hour"]:
        start = _start(unit, datetime.fromisoformat(row["hour"]).astimezone(zone))
        counts.setdefault(start, Counter()).update({s: row[s] for s in SEVERITIES})
    return Chart(unit, tuple(_bar(start, counts[start]) for start in sorted(counts)))


def counts_in(chart: Chart, by_hour: Sequence[Mapping[str, Any]]) -> list[int]:
    """The records of a theme by the bars of `chart`; `by_hour` is a part of the chart's own."""
    zone = chart.bars[0].start.tzinfo
    counts = dict.fromkeys((bar.start for bar in chart.bars), 0)
    for row in by_hour:
        start = _start(chart.unit, datetime.fromisoformat(row["hour"]).astimezone(zone))
        counts[start] += row["records"]
    return list(counts.values())


def _bar(start: datetime, counts: Counter[str]) -> Bar:
    parts = tuple((s, counts[s]) for s in reversed(SEVERITIES) if counts[s])
    return Bar(start, counts.total(), parts)


def _unit(first: datetime, last: datetime) -> Unit:
    months = (last.year - first.year) * 12 + last.month - first.month
    if last - first <= timedelta(hours=MOST_HOURS):
        return "hour"
    if last - first <= timedelta(days=MOST_DAYS):
        return "day"
    return "month" if months <= MOST_MONTHS else "year"


def _start(unit: Unit, time: datetime) -> datetime:
    """The beginning of the unit that holds `time`, by the clock of its zone."""
    start = time.replace(minute=0, second=0, microsecond=0)
    if unit != "hour":
        start = start.replace(hour=0, fold=0)
    if unit in ("month", "year"):
        start = start.replace(day=1)
    return start.replace(month=1) if unit == "year" else start


def _starts(unit: Unit, first: datetime, last: datetime) -> set[datetime]:
    """Every unit from `first` to `last`; of years none, they are too many to show empty ones."""
    if unit == "year":
        return set()
    step = timedelta(hours=1) if unit == "hour" else timedelta(days=1)
    zone, time, end = first.tzinfo, first.astimezone(UTC), last.astimezone(UTC)
    starts = {_start(unit, last)}
    while time < end:
        starts.add(_start(unit, time.astimezone(zone)))
        time += step
    return starts
