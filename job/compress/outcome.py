"""What came of making instructions shorter: what is kept of it, and what it saved. Pure.

Invariant: `text` is what the model is told, whatever the outcome; it is the text as it was written
unless every rule survived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from job.mask.masking import Masker
from job.own_instructions import own_hash
from serve.ask import tokens
from serve.ask.ask import CallCounts

VERSION = 1
"""Part of the name under which an outcome is kept: raised when what is asked, or how it is checked,
changes."""
LONG_CHARACTERS = 500
"""Instructions of no more have little to save."""
SHOWN_CHARACTERS = 80
"""Of each part of a detail."""
LEAST_SAVING = 0.05
"""Share of the tokens below which shorter instructions are not worth another wording."""

Reason = Literal["short", "lost", "unanswered", "judged", "saves_nothing", "provider"]
"""Why the text is used as it was written: it is not long; a rule did not survive the check; the
model left a rule out; it found a short form to say something else; there is too little to save; the
provider could not be asked."""
NOT_KEPT = ("unanswered", "provider")
"""Reasons that say nothing of the text: the next run may have an answer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `reason` None: `text` is the short form. `detail`: a rule that did not pass
    and what was made of it, or the provider's words; `rules`: how many the model was asked about;
    `recalled`: in an earlier run."""

    text: str
    reason: Reason | None
    detail: tuple[str, ...] = ()
    rules: int = 0
    recalled: bool = False


def kept_name(own: str, model: str) -> str:
    """Under what name the outcome for the text `own` by `model` is kept."""
    return f"instructions-{VERSION}-{own_hash(own)}-{own_hash(model)}"


def encode(outcome: Outcome) -> bytes:
    """The bytes to keep; the text as it was written is not repeated."""
    short = outcome.text if outcome.reason is None else None
    return orjson.dumps(
        {
            "short": short,
            "reason": outcome.reason,
            "detail": outcome.detail,
            "rules": outcome.rules,
        }
    )


def decode(value: bytes | None, own: str) -> Outcome | None:
    """The outcome for the text `own` that was kept; None for nothing, and for bytes that are none
    (a damaged store) or that should not have been kept."""
    try:
        data = orjson.loads(value or b"")
        if data["reason"] in NOT_KEPT:
            return None
        text = own if data["reason"] is not None else data["short"]
        if not (isinstance(text, str) and text):
            return None
        detail = tuple(map(str, data["detail"]))
        return Outcome(text, data["reason"], detail, int(data["rules"]), recalled=True)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


def saving(
    own: str, outcome: Outcome, packs: int, spent: CallCounts, masker: Masker
) -> dict[str, Any]:
    """What the outcome did for a run of `packs` calls with instructions, in tokens as we count
    them: before and after, saved in all these calls, and `tokens_spent` on shortening in this run
    (as the provider counts them). What is shown of the text is masked."""
    before, after = tokens.count(own), tokens.count(outcome.text)
    return {
        "used": outcome.reason is None,
        "reason": outcome.reason,
        "detail": _shown(outcome, masker),
        "rules": outcome.rules,
        "recalled": outcome.recalled,
        "tokens_before": before,
        "tokens_after": after,
        "calls": packs,
        "tokens_saved": (before - after) * packs,
        "tokens_spent": spent.tokens_in + spent.tokens_out,
        "requests": spent.requests,
    }


def _shown(outcome: Outcome, masker: Masker) -> str | None:
    """The detail as it may be shown: masked first, so that no cut hides what is private."""
    parts = []
    for part in outcome.detail:
        masked = masker.mask(part)[0]
        shown = masked if len(masked) <= SHOWN_CHARACTERS else f"{masked[: SHOWN_CHARACTERS - 1]}…"
        parts.append(shown if outcome.reason == "provider" else f"“{shown}”")
    return " → ".join(parts) or None
