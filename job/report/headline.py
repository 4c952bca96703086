"""The sentences at the top of the report, made by code from counted numbers.

Invariant: every number in them stands in the report beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from job.report.words import Words, share
from job.totals import Totals


def headline(
    totals: Totals,
    themes: Sequence[Mapping[str, Any]],
    ledger: Mapping[str, Any],
    run: Mapping[str, Any],
    quality: Mapping[str, Any],
    words: Words,
) -> dict[str, Any]:
    """The headline, the line of trust, the notices, and the numbers they use."""
    numbers = {
        "records": totals.count(),
        "problems": totals.count(outcome="problem"),
        "themes": len(themes),
        "users": len(totals.users),
        "need_action": sum(theme["needs_action"] for theme in themes),
        "by_severity": dict(Counter(theme["severity"] for theme in themes)),
    }
    return {
        "text": _text(numbers, words),
        "detail": _detail(numbers, words),
        "trust": _trust(numbers["records"], ledger, run, quality, words),
        "notices": _notices(numbers["records"], ledger, run, words),
        **numbers,
    }


def _text(numbers: Mapping[str, Any], words: Words) -> str:
    if not numbers["records"]:
        return words("no_records")
    if not numbers["problems"]:
        return words("no_problems")
    if not numbers["need_action"]:
        return words("none_needs_action")
    counts = [
        words(f"count_{severity}", n=numbers["by_severity"][severity])
        for severity in ("critical", "high")
        if severity in numbers["by_severity"]
    ]
    return words("need_action", n=numbers["need_action"], severities=words.list(counts))


def _detail(numbers: Mapping[str, Any], words: Words) -> str | None:
    if not numbers["themes"]:
        return None
    parts = [
        words(
            "detail_themes",
            problems=numbers["problems"],
            records=numbers["records"],
            n=numbers["themes"],
        )
    ]
    if numbers["users"]:
        parts.append(words("detail_users", n=numbers["users"]))
    return words.list(parts)


def _trust(
    records: int,
    ledger: Mapping[str, Any],
    run: Mapping[str, Any],
    quality: Mapping[str, Any],
    words: Words,
) -> str:
    parts = [words("trust_records", n=records)]
    if records:
        parts.append(words("trust_analysed", share=share(quality["analysed_share"])))
    parts.append(words("trust_review", n=ledger["review"]))
    parts.append(words("trust_failed", n=ledger["failed"]))
    parts += [
        words(f"trust_{name}", n=ledger[name]) for name in ("unasked", "rejected") if ledger[name]
    ]
    parts.append(words("trust_masked", n=quality["masked"]))
    if run["provider"] == "extractive":
        parts.append(words("trust_no_model"))
    else:
        parts.append(words("trust_model", model=run["model"]))
    return words.list(parts)


def _notices(
    records: int, ledger: Mapping[str, Any], run: Mapping[str, Any], words: Words
) -> list[dict[str, str]]:
    notices = []
    counts = {"unasked": ledger["unasked"], "records": records}
    if run["stopped"]:
        text = words("notice_partial", reason=run["stopped"]["reason"], **counts)
        notices.append({"code": "partial", "text": text})
    elif ledger["unasked"]:
        notices.append({"code": "partial", "text": words("notice_unasked", **counts)})
    if run["provider"] == "extractive":
        notices.append({"code": "model_free", "text": words("notice_model_free")})
    return notices
