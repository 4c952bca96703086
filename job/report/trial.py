"""What a comparison came to, in a sentence of either language.

Invariant: every reason that `job.compare.verdict` can give has its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from job.report.words import Words, share

_KEYS = {
    "alike": "trial_alike",
    "fades": "trial_fades",
    "one_fades": "trial_one_fades",
    "more_failed": "trial_more_failed",
    "more_review": "trial_more_review",
    "differs": "trial_differs",
    "maybe_differs": "trial_maybe_differs",
    "too_few": "trial_too_few",
    "short_packs": "trial_short_packs",
}


def reason_in_words(verdict: Mapping[str, Any], words: Words) -> str:
    """Why the verdict is what it is; `verdict`: `Verdict.as_json()`, or more."""
    return words(
        _KEYS[verdict["reason"]],
        before=share(verdict["before"]),
        after=share(verdict["after"]),
        position=verdict["position"],
        longest=verdict["longest_pack"],
        n=verdict["records"],
    )


def canary_notice(run: Mapping[str, Any], words: Words) -> str | None:
    """What must be said on top of a report whose canary was bad; None where it was not, or none
    was sent."""
    canary = run.get("canary")
    if canary is None or canary["verdict"] != "bad":
        return None
    return words("notice_canary", reason=reason_in_words(canary, words))
