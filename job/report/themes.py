"""The themes of a run as they stand in report.json, and what users praised.

Invariant: every number is from the totals; every word is from themes.parquet or known.yaml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.history.changes import Change
from job.history.known import Verdict
from job.records import KINDS, SEVERITIES
from job.reduce.again import Seen
from job.reduce.tallies import TOP
from job.reduce.totals import QUARTER_US, ThemeTotals, Totals
from job.report.evidence import QUOTES, LineOf, evidence, local

ACTION_SEVERITIES = ("high", "critical")
ACTION_STATUSES = ("new", "worse")
WORDS = ("title", "summary", "cause", "basis", "action", "severity", "severity_reason")


def theme_rows(
    totals: Totals,
    named: Mapping[str, Mapping[str, Any]],
    seen: Seen,
    zone: ZoneInfo,
    line_of: LineOf | None,
) -> list[dict[str, Any]]:
    """The themes of problem records, the gravest first, of equal ones that with most records.

    What comes from earlier runs, or is known from elsewhere, is null until `judge_rows`.
    """
    rows = [
        _row(named[id], theme, totals, seen, zone, line_of)
        for id, theme in totals.themes.items()
        if id
    ]
    return sorted(rows, key=lambda t: (-SEVERITIES.index(t["severity"]), -t["records"], t["id"]))


def _row(
    named: Mapping[str, Any],
    theme: ThemeTotals,
    totals: Totals,
    seen: Seen,
    zone: ZoneInfo,
    line_of: LineOf | None,
) -> dict[str, Any]:
    hours: Counter[str] = Counter()
    for quarter, n in sorted(theme.quarters.items()):
        hours[hour_of(quarter, zone)] += n
    kinds = {kind: theme.kinds[kind] for kind in KINDS if theme.kinds[kind]}
    return {
        "id": named["id"],
        **{name: named[name] for name in WORDS},
        "named_by": named["named_by"],
        "needs_action": named["severity"] in ACTION_SEVERITIES,
        "status": None,
        "change": None,
        "days_seen": None,
        "owner": None,
        "muted_until": None,
        "returned": False,
        "records": theme.records,
        "issues": theme.issues,
        "by_severity": {s: theme.severities[s] for s in SEVERITIES if theme.severities[s]},
        "users": theme.users,
        "share": round(theme.records / totals.count(outcome="problem"), 3),
        "of_kind": {kind: _share(n, totals.count(kind)) for kind, n in kinds.items()},
        "services": _top(named["id"], "service", theme, seen),
        "services_total": theme.different("service"),
        "hosts": _top(named["id"], "host", theme, seen),
        "hosts_total": theme.different("host"),
        "top_users": _top(named["id"], "user", theme, seen),
        "varied": theme.varied.rows(),
        "first": local(theme.first, zone),
        "last": local(theme.last, zone),
        "by_kind": kinds,
        "by_hour": [{"hour": hour, "records": n} for hour, n in hours.items()],
        "incident": None,
        "evidence": evidence(theme, zone, line_of),
    }


def _share(records: int, of: int) -> dict[str, Any]:
    return {"records": records, "of": of, "share": round(records / of, 3)}


def _top(id: str, field: str, theme: ThemeTotals, seen: Seen) -> list[dict[str, Any]]:
    """The names of `field` with most records: counted at once, or in the second look."""
    if field not in theme.names:
        return []
    names = theme.names[field]
    if names.exact:
        counts = names.top(TOP)
    else:
        again = [
            (name, n) for (of, kind, name), n in seen.names.items() if (of, kind) == (id, field)
        ]
        counts = sorted(again, key=lambda item: (-item[1], item[0]))[:TOP]
    return [{"name": name, "records": n} for name, n in counts]


def judge_rows(
    rows: Sequence[dict[str, Any]],
    changes: Mapping[str, Change] | None,
    verdicts: Mapping[str, Verdict],
) -> None:
    """Put in place what became of the themes (None: nothing is comparable), what is known of them,
    and whether they need action."""
    for row in rows:
        if changes is not None:
            change = changes[row["id"]]
            row["status"] = change.status
            row["change"] = {"before": change.before, "now": change.now, "ratio": change.ratio}
            row["days_seen"] = {"days": change.days, "since": change.since}
        verdict = verdicts[row["id"]]
        row["owner"], row["returned"] = verdict.owner, verdict.returned
        if verdict.muted_until is not None:
            row["muted_until"] = verdict.muted_until.isoformat()
        urgent = row["severity"] in ACTION_SEVERITIES or row["status"] in ACTION_STATUSES
        row["needs_action"] = row["muted_until"] is None and (urgent or row["returned"])


def praise_rows(
    totals: Totals, named: Mapping[str, Mapping[str, Any]], zone: ZoneInfo, line_of: LineOf | None
) -> list[dict[str, Any]]:
    """What was praised, most often first; praise that belongs to no theme comes last, id null."""
    groups = sorted(
        totals.praise.items(), key=lambda item: (not item[0], -item[1].records, item[0])
    )
    return [
        {
            "id": id or None,
            "title": named[id]["title"] if id else None,
            "records": group.records,
            "users": group.users,
            "evidence": evidence(group, zone, line_of, limit=QUOTES if id else 2 * QUOTES),
        }
        for id, group in groups
    ]


def hour_of(quarter: int, zone: ZoneInfo) -> str:
    """The hour of the report's zone that a quarter of an hour belongs to."""
    time = datetime.fromtimestamp(quarter * QUARTER_US // 1_000_000, zone)
    return time.replace(minute=0).isoformat()
