"""What the file of known problems says of a run's themes, as it stands in report.json.

Invariant: a muted theme is counted like any other; that it is muted takes it out of the headline
and the actions, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.history.known import Entry, Verdict, judge
from job.reduce.totals import Totals
from job.report.compared import run_day


def verdicts(
    entries: Sequence[Entry],
    themes: Sequence[Mapping[str, Any]],
    totals: Totals,
    run: Mapping[str, Any],
    zone: ZoneInfo,
) -> dict[str, Verdict]:
    """What is known of each of `themes`, by id."""
    started = datetime.fromisoformat(run["started"])
    facts = {
        "day": run_day(run, totals, zone) or started.astimezone(zone).date().isoformat(),
        "started": started,
        "zone": zone,
    }
    found = {}
    for theme in themes:
        last = totals.themes[theme["id"]].last
        found[theme["id"]] = judge(entries, {**theme, "last": _time(last)}, facts)
    return found


def known_section(
    file: str | None, entries: Sequence[Entry], themes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The section `known`."""
    muted = [theme for theme in themes if theme["muted_until"] is not None]
    return {
        "file": file,
        "muted": {"themes": len(muted), "records": sum(theme["records"] for theme in muted)},
        "returned": [theme["id"] for theme in themes if theme["returned"]],
        "unused": [e.about for e in entries if not any(e.matches(theme) for theme in themes)],
    }


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else datetime.fromtimestamp(microseconds / 1e6, UTC)
