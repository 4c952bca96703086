"""The sentences at the top of the report, made by code from its numbers.

Invariant: every number in them stands in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from job.records import SEVERITIES
from job.report.money import cap_notice
from job.report.trial import canary_notice
from job.report.words import Words, share

_SPELLED = (
    *("two", "three", "four", "five", "six", "seven"),
    *("eight", "nine", "ten", "eleven", "twelve"),
)


def headline(problems: Mapping[str, Any], records: int, unknown: int, words: Words) -> str:
    """What the reader must know: how many problems need action, and which are new or worse; where
    nothing is comparable, how bad they are.

    `problems` is that part of the report; `records` is how many there are of any outcome, and
    `unknown` those of them that nobody has looked at.
    """
    if not records:
        return words("no_records")
    if not problems["records"] and unknown:
        return words("none_known", n=unknown)
    if not problems["records"]:
        return words("no_problems")
    if not problems["need_action"]:
        return words("none_needs_action")
    if problems["action_by_change"] is None:
        counts = _by_severity(problems, words)
        if problems["returned"]:
            counts.append(words("of_them_returned", n=problems["returned"]))
    else:
        counts = _by_change(problems["action_by_change"], words)
    return words("need_action", n=problems["need_action"], counts=words.list(counts))


def _by_severity(problems: Mapping[str, Any], words: Words) -> list[str]:
    counts = problems["action_by_severity"]
    return [words(f"count_{s}", n=counts[s]) for s in reversed(SEVERITIES) if s in counts]


def _by_change(counts: Mapping[str, Any], words: Words) -> list[str]:
    parts = [
        words(f"count_{change}", n=counts[change])
        for change in ("returned", "new", "worse")
        if counts[change]
    ]
    if counts["lasting"]:
        key = "count_lasting" if counts["lasting"] == 1 else "count_lasting_most"
        if counts["lasting_days"] < 2:
            key = "count_unchanged"
        days = _days(counts["lasting_days"], words)
        parts.append(words(key, n=counts["lasting"], days=days))
    return parts


def _days(days: int, words: Words) -> str:
    """A number of days, spelled out where that reads better."""
    if words.language == "en" and 2 <= days < len(_SPELLED) + 2:
        return _SPELLED[days - 2]
    return f"{days:,}"


def detail(report: Mapping[str, Any], words: Words) -> str:
    """How much stands behind the headline; nothing where there are no problems.

    Where the headline says what is new, this says how bad it is: what is new need not be grave.
    """
    problems, ledger = report["problems"], report["ledger"]
    if not problems["themes"]:
        return ""
    known = ledger["records"] - ledger["unasked"] - ledger["failed"]
    counts = {"problems": problems["records"], "records": ledger["records"], "known": known}
    key = "detail_themes" if known == ledger["records"] else "detail_themes_known"
    parts = [words(key, n=problems["themes"], **counts)]
    if problems["users"]:
        parts.append(words("detail_users", n=problems["users"]))
    if incidents := report["incidents"]:
        counts = {"n": len(incidents), "records": incidents[0]["records"]}
        parts.append(words("detail_incidents", **counts))
    if problems["muted"]:
        parts.append(words("detail_muted", n=problems["muted"]))
    behind = words.list(parts)
    if not problems["need_action"] or problems["action_by_change"] is None:
        return behind
    how_bad = words("detail_action", counts=words.list(_by_severity(problems, words)))
    return words.sentences([how_bad, behind])


def trust(report: Mapping[str, Any], words: Words) -> str:
    """One line on what the report rests on."""
    ledger, quality, method = report["ledger"], report["quality"], report["method"]
    parts = [words("trust_records", n=ledger["records"])]
    if ledger["records"]:
        parts.append(words("trust_analysed", share=share(quality["analysed_share"])))
    parts += [words(f"trust_{name}", n=ledger[name]) for name in ("review", "failed")]
    parts += [
        words(f"trust_{name}", n=ledger[name]) for name in ("unasked", "rejected") if ledger[name]
    ]
    parts.append(words("trust_masked", n=quality["masked"]))
    if method["analyst"] == "rules":
        parts.append(words("trust_no_model"))
    else:
        parts.append(words("trust_model", model=method["model"]))
    return words.list(parts)


def notices(report: Mapping[str, Any], words: Words) -> list[tuple[str, str]]:
    """What must be known before anything is believed: (its name, its sentence)."""
    stopped, ledger = report["run"]["stopped"], report["ledger"]
    counts = {"unasked": ledger["unasked"], "records": ledger["records"]}
    found = []
    if capped := cap_notice(report, words):
        found.append(("partial", capped))
    elif stopped:
        reason = words.name("stopped", stopped["reason"])
        found.append(("partial", words("notice_partial", reason=reason, **counts)))
    elif ledger["unasked"]:
        found.append(("partial", words("notice_unasked", **counts)))
    if (canary := canary_notice(report["run"], words)) is not None:
        found.append(("canary", canary))
    if report["method"]["analyst"] == "rules":
        found.append(("model_free", words("notice_model_free")))
    return found
