"""Totals -> report.json: every number of the report, counted by code.

Invariant: pure; the same totals, themes and run give the same report. The pages show nothing that
is not in it. A number that the totals and the ledger both hold must be the same in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from job.errors import LedgerError
from job.history.changes import Baseline
from job.history.known import Entry
from job.records import KINDS, OUTCOMES, SEVERITIES, VIAS
from job.reduce.again import Seen
from job.reduce.incidents import find_incidents
from job.reduce.totals import Totals
from job.report.compared import changes_of, comparison
from job.report.earlier import with_cost
from job.report.evidence import LineOf, local
from job.report.headline import headline
from job.report.known import known_section, verdicts
from job.report.suspects import contradiction_rows, incident_rows
from job.report.themes import ACTION_STATUSES, hour_of, judge_rows, praise_rows, theme_rows
from job.report.words import Words

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
    *,
    seen: Seen | None = None,
    baseline: Baseline | None = None,
    known: Sequence[Entry] = (),
) -> dict[str, Any]:
    """The report of a run as a value that fits `docs/report.schema.json`.

    `themes` are rows of themes.parquet, of which only the words are used; `rejected` are examples
    of rejected input. `line_of` finds the line of a position, for the evidence shown. `seen` is
    the second look at the results, where one was wanted; `baseline` what to compare with, None
    where nothing was asked for; `known` the entries of the file of known problems that `run` names.

    Raises LedgerError where results, themes and ledger contradict one another.
    """
    _check(totals, themes, ledger)
    ledger = with_cost(ledger)
    zone, words = ZoneInfo(run["timezone"]), Words(run["language"])
    seen = seen or Seen()
    named = {theme["id"]: theme for theme in themes}
    shown = theme_rows(totals, named, seen, zone, line_of)
    judge_rows(
        shown, changes_of(baseline, totals, run, zone), verdicts(known, shown, totals, run, zone)
    )
    incidents = find_incidents(totals.themes, totals.first, totals.last)
    compared = comparison(baseline, shown, totals)
    problems = _problems(totals, shown, comparable=compared is not None and compared["comparable"])
    return {
        "period": _period(totals, run, zone),
        "run": dict(run),
        "ledger": {
            name: value for name, value in ledger.items() if name not in ("sources", "spend")
        },
        "headline": headline(
            problems,
            totals.count(),
            totals.count(via="unasked") + totals.count(via="failed"),
            words,
        ),
        "comparison": compared,
        "actions": [
            {name: theme[name] for name in ACTION} | {"theme": theme["id"]}
            for theme in sorted(shown, key=lambda theme: not theme["returned"])
            if theme["needs_action"]
        ],
        "incidents": incident_rows(incidents, shown, seen, zone, words),
        "themes": shown,
        "problems": problems,
        "known": known_section(run.get("known"), known, shown),
        "contradictions": contradiction_rows(totals.contradictions, seen, zone, line_of),
        "normal": _by_kind(totals, "normal"),
        "positive": _by_kind(totals, "positive")
        | {"themes": praise_rows(totals, named, zone, line_of)},
        "sources": list(ledger["sources"]),
        "quality": _quality(totals, ledger, rejected, line_of),
        "cost": dict(ledger["calls"]) | dict(ledger["spend"]),
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
        hours.setdefault(hour_of(quarter, zone), Counter())[severity] += timed[quarter, severity]
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


def _problems(
    totals: Totals, themes: Sequence[Mapping[str, Any]], comparable: bool
) -> dict[str, Any]:
    acute = [theme for theme in themes if theme["needs_action"]]
    return _by_kind(totals, "problem") | {
        "themes": len(themes),
        "users": len(totals.users),
        "need_action": len(acute),
        "by_severity": _by_severity(themes),
        "records_by_severity": _records_by_severity(totals),
        "action_by_severity": _by_severity(acute),
        "action_by_change": _by_change(acute) if comparable else None,
        "returned": sum(theme["returned"] for theme in acute),
        "muted": sum(theme["muted_until"] is not None for theme in themes),
    }


def _by_severity(themes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return _in_order(Counter(theme["severity"] for theme in themes))


def _by_change(themes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`themes`, each once, by why they need action now."""
    why = Counter(
        "returned"
        if theme["returned"]
        else theme["status"]
        if theme["status"] in ACTION_STATUSES
        else "lasting"
        for theme in themes
    )
    days = [
        theme["days_seen"]["days"]
        for theme in themes
        if not theme["returned"] and theme["status"] not in ACTION_STATUSES
    ]
    return {name: why[name] for name in ("returned", "new", "worse", "lasting")} | {
        "lasting_days": max(days, default=None)
    }


def _records_by_severity(totals: Totals) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (_, severity), n in totals.problems.items():
        counts[severity] += n
    return _in_order(counts)


def _in_order(counts: Counter[str]) -> dict[str, int]:
    """By severity, those that there are, the least first."""
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
        "flags": _most_first(totals.flags),
        "rejected_by": _most_first(reasons),
        "rejected_examples": [
            dict(row) | {"line": line_of(row["source"], row["position"]) if line_of else None}
            for row in rejected
        ],
    }


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    """`counts`, equal ones by name: no order of arrival shows."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


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
        "own_instructions": run.get("own_instructions"),
    }
