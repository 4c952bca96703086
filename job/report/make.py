"""Totals -> report.json: every number of the report, counted by code.

Invariant: pure; the same totals, themes and run give the same report. The pages show nothing that
is not in it. A number that the totals and the ledger both hold must be the same in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.errors import LedgerError
from job.records import KINDS, OUTCOMES, SEVERITIES, VIAS
from job.report.evidence import QUOTES, LineOf, evidence, local
from job.report.headline import headline
from job.report.words import Words
from job.totals import QUARTER_US, ThemeTotals, Totals

ACTION_SEVERITIES = ("high", "critical")
ACTION = (
    *("title", "action", "severity", "records", "users"),
    *("status", "days_seen", "returned", "owner"),
)


def make_report(
    totals: Totals,
    themes: Sequence[Mapping[str, Any]],
    ledger: Mapping[str, Any],
    timing: Mapping[str, Any],
    run: Mapping[str, Any],
    rejected: Sequence[Mapping[str, Any]],
    line_of: LineOf | None = None,
) -> dict[str, Any]:
    """The report of a run as a value that fits `docs/report.schema.json`.

    `themes` are rows of themes.parquet, of which only the words are used; `rejected` are examples
    of rejected input. `line_of` finds the line of a position, for the evidence shown.

    Raises LedgerError where results, themes and ledger contradict one another.
    """
    _check(totals, themes, ledger)
    zone = ZoneInfo(run["timezone"])
    named = {theme["id"]: theme for theme in themes}
    shown = [
        _theme(named[id], theme, totals.count(outcome="problem"), zone, line_of)
        for id, theme in totals.themes.items()
        if id
    ]
    shown.sort(key=lambda t: (-SEVERITIES.index(t["severity"]), -t["records"], t["id"]))
    problems = _problems(totals, shown)
    return {
        "period": _period(totals, run, zone),
        "run": dict(run),
        "ledger": {name: value for name, value in ledger.items() if name != "sources"},
        "headline": headline(
            problems,
            totals.count(),
            totals.count(via="unasked") + totals.count(via="failed"),
            Words(run["language"]),
        ),
        "comparison": None,
        "actions": [
            {name: theme[name] for name in ACTION} | {"theme": theme["id"]}
            for theme in shown
            if theme["needs_action"]
        ],
        "incidents": [],
        "themes": shown,
        "problems": problems,
        "known": {"file": None, "muted": {"themes": 0, "records": 0}, "returned": [], "unused": []},
        "contradictions": [],
        "normal": _by_kind(totals, "normal"),
        "positive": _by_kind(totals, "positive")
        | {"themes": _praise(totals, named, zone, line_of)},
        "sources": list(ledger["sources"]),
        "quality": _quality(totals, ledger, rejected, line_of),
        "cost": dict(ledger["calls"]),
        "timing": dict(timing),
        "method": _method(themes, run),
    }


def _check(totals: Totals, themes: Sequence[Mapping[str, Any]], ledger: Mapping[str, Any]) -> None:
    counted = {"records": totals.count()} | {via: totals.count(via=via) for via in VIAS}
    for name, count in counted.items():
        if ledger[name] != count:
            raise LedgerError(
                f"the ledger says {name} = {ledger[name]}, the results hold {count}: "
                "the output folder is damaged, run again with --overwrite"
            )
    unknown = {*totals.themes, *totals.praise} - {theme["id"] for theme in themes} - {""}
    if unknown:
        raise LedgerError(
            f"the results name {len(unknown)} theme(s) that themes.parquet lacks, such as "
            f"{min(unknown)}: the output folder is damaged, run again with --overwrite"
        )


def _period(totals: Totals, run: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    timed = {(q, s): n for (q, s), n in totals.problems.items() if q is not None}
    hours: dict[str, Counter[str]] = {}
    for quarter, severity in sorted(timed):
        hours.setdefault(_hour(quarter, zone), Counter())[severity] += timed[quarter, severity]
    return {
        "first": local(totals.first, zone),
        "last": local(totals.last, zone),
        "timezone": run["timezone"],
        "timed": totals.timed,
        "untimed": totals.count() - totals.timed,
        "untimed_problems": totals.problems.total() - sum(timed.values()),
        "by_hour": [
            {"hour": hour, "records": counts.total()} | {s: counts[s] for s in SEVERITIES}
            for hour, counts in hours.items()
        ],
    }


def _theme(
    named: Mapping[str, Any],
    totals: ThemeTotals,
    problems: int,
    zone: ZoneInfo,
    line_of: LineOf | None,
) -> dict[str, Any]:
    hours: Counter[str] = Counter()
    for quarter, n in sorted(totals.quarters.items()):
        hours[_hour(quarter, zone)] += n
    words = ("title", "summary", "cause", "basis", "action", "severity", "severity_reason")
    return {
        "id": named["id"],
        **{name: named[name] for name in words},
        "named_by": named["named_by"],
        "needs_action": named["severity"] in ACTION_SEVERITIES,
        "status": None,
        "change": None,
        "days_seen": None,
        "owner": None,
        "muted_until": None,
        "returned": False,
        "of_kind": {},
        "services": [],
        "services_total": 0,
        "hosts": [],
        "hosts_total": 0,
        "top_users": [],
        "varied": [],
        "incident": None,
        "records": totals.records,
        "issues": totals.issues,
        "users": totals.users,
        "share": round(totals.records / problems, 3),
        "first": local(totals.first, zone),
        "last": local(totals.last, zone),
        "by_kind": {kind: totals.kinds[kind] for kind in KINDS if totals.kinds[kind]},
        "by_hour": [{"hour": hour, "records": n} for hour, n in hours.items()],
        "evidence": evidence(totals, zone, line_of),
    }


def _praise(
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


def _problems(totals: Totals, themes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return _by_kind(totals, "problem") | {
        "themes": len(themes),
        "users": len(totals.users),
        "need_action": sum(theme["needs_action"] for theme in themes),
        "by_severity": dict(Counter(theme["severity"] for theme in themes)),
        "records_by_severity": _records_by_severity(totals),
        "action_by_severity": dict(Counter(t["severity"] for t in themes if t["needs_action"])),
        "action_by_change": None,
    }


def _records_by_severity(totals: Totals) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (_, severity), n in totals.problems.items():
        counts[severity] += n
    return {severity: counts[severity] for severity in SEVERITIES if counts[severity]}


def _by_kind(totals: Totals, outcome: str) -> dict[str, Any]:
    return {
        "records": totals.count(outcome=outcome),
        "by_kind": {kind: n for kind in KINDS if (n := totals.count(kind, outcome=outcome))},
    }


def _quality(
    totals: Totals,
    ledger: Mapping[str, Any],
    rejected: Sequence[Mapping[str, Any]],
    line_of: LineOf | None,
) -> dict[str, Any]:
    records = totals.count()
    analysed = sum(totals.count(via=via) for via in ("answered", "recalled", "folded"))
    reasons: Counter[str] = Counter()
    for source in ledger["sources"]:
        reasons.update(source["rejected_by"])
    return {
        "analysed": analysed,
        # Rounded down: 100 % means that nothing is missing.
        "analysed_share": analysed * 1000 // records / 1000 if records else None,
        "by_via": {via: totals.count(via=via) for via in VIAS},
        "by_outcome": {outcome: totals.count(outcome=outcome) for outcome in OUTCOMES},
        "masked": sum(ledger["masked"].values()),
        "misquoted": totals.misquoted,
        "unthemed": totals.themes[""].records if "" in totals.themes else 0,
        "flags": dict(totals.flags.most_common()),
        "rejected_by": dict(reasons.most_common()),
        "rejected_examples": [
            dict(row) | {"line": line_of(row["source"], row["position"]) if line_of else None}
            for row in rejected
        ],
    }


def _method(themes: Sequence[Mapping[str, Any]], run: Mapping[str, Any]) -> dict[str, Any]:
    names = Counter(theme["named_by"] for theme in themes)
    return {
        "analyst": "rules" if run["provider"] == "extractive" else "model",
        "named_by": {"model": names["model"], "code": names["code"]},
        **{
            name: run[name]
            for name in (
                "version",
                "provider",
                "model",
                "mode",
                "instructions",
                "language",
                "timezone",
                "started",
                "finished",
            )
        },
    }


def _hour(quarter: int, zone: ZoneInfo) -> str:
    """The hour of the report's zone that a quarter of an hour belongs to."""
    time = datetime.fromtimestamp(quarter * QUARTER_US // 1_000_000, zone)
    return time.replace(minute=0).isoformat()
