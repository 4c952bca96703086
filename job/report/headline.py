"""The sentences at the top of the report, made by code from its numbers.

Invariant: every number in them stands in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from job.report.words import Words, share


def headline(problems: Mapping[str, Any], records: int, unknown: int, words: Words) -> str:
    """What the reader must know: how many problems need action, and how bad they are.

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
    counts = [
        words(f"count_{severity}", n=problems["by_severity"][severity])
        for severity in ("critical", "high")
        if severity in problems["by_severity"]
    ]
    return words("need_action", n=problems["need_action"], severities=words.list(counts))


def detail(report: Mapping[str, Any], words: Words) -> str:
    """How much stands behind the headline; nothing where there are no problems."""
    problems, records = report["problems"], report["ledger"]["records"]
    if not problems["themes"]:
        return ""
    counts = {"problems": problems["records"], "records": records, "n": problems["themes"]}
    parts = [words("detail_themes", **counts)]
    if problems["users"]:
        parts.append(words("detail_users", n=problems["users"]))
    return words.list(parts)


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
    if stopped:
        found.append(("partial", words("notice_partial", reason=stopped["reason"], **counts)))
    elif ledger["unasked"]:
        found.append(("partial", words("notice_unasked", **counts)))
    if report["method"]["analyst"] == "rules":
        found.append(("model_free", words("notice_model_free")))
    return found
