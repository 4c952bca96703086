"""What became of a run's themes against earlier runs, as it stands in report.json.

Invariant: where nothing is comparable, no number of an earlier run is set beside one of this run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.history.changes import STATUSES, Baseline, Change, before, changes, day_of, gone
from job.reduce.totals import QUARTER_US, Totals
from job.report.evidence import local


def changes_of(
    baseline: Baseline | None, totals: Totals, run: Mapping[str, Any], zone: ZoneInfo
) -> dict[str, Change] | None:
    """What became of each theme with problem records; None where nothing is comparable."""
    if baseline is None or baseline.reason is not None:
        return None
    now = {id: theme.records for id, theme in totals.themes.items() if id}
    return changes(baseline, now, run_day(run, totals, zone))


def run_day(run: Mapping[str, Any], totals: Totals, zone: ZoneInfo) -> str | None:
    """The day that a run (its run.json) is of (see `changes.day_of`)."""
    days: Counter[str] = Counter()
    for (quarter, _), n in totals.problems.items():
        if quarter is not None:
            time = datetime.fromtimestamp(quarter * QUARTER_US // 1_000_000, zone)
            days[time.date().isoformat()] += n
    named = (run.get("identity") or {}).get("date")
    return day_of(named and str(named), days, local(totals.last, zone))


def comparison(
    baseline: Baseline | None, themes: Sequence[Mapping[str, Any]], totals: Totals
) -> dict[str, Any] | None:
    """The section `comparison`; None where no comparison was asked for."""
    if baseline is None:
        return None
    section: dict[str, Any] = {
        "mode": baseline.mode,
        "comparable": baseline.reason is None,
        "reason": baseline.reason,
        "runs": [
            {name: getattr(run, name) for name in ("path", "day", "records", "problems", "model")}
            for run in baseline.runs
        ],
        "records": None,
        "problems": None,
        "counts": None,
        "gone": [],
    }
    if baseline.reason is not None:
        return section
    lost = gone(baseline, (theme["id"] for theme in themes))
    counts = Counter(theme["status"] for theme in themes)
    return section | {
        "records": {"before": before(baseline, "records"), "now": totals.count()},
        "problems": {
            "before": before(baseline, "problems"),
            "now": totals.count(outcome="problem"),
        },
        "counts": {status: counts[status] for status in STATUSES} | {"gone": len(lost)},
        "gone": [
            {
                **{name: getattr(one.theme, name) for name in ("id", "title", "severity", "kind")},
                "before": one.before,
                "last_seen": one.last_seen,
            }
            for one in lost
        ],
    }
