"""What run.json, the report and the last lines of a run say of its instructions.

Invariant: what is shown of the user's own text, or of what a model made of it, is masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from job.compress.calls import InstructionCalls
from job.compress.outcome import saving
from job.config import Settings
from job.instructions import instructions_hash
from job.own_instructions import shown_instructions
from job.planning import RunPlan
from job.report.instructions import compression_words
from job.report.words import Words

_EXPECTED = ("short", "saves_nothing")
"""Reasons to use the text as it was written that nobody needs to be warned of."""


def told(
    settings: Settings, plan: RunPlan, calls: InstructionCalls | None, packs: int
) -> dict[str, Any]:
    """What run.json says: `instructions`, the hash of what the model was told in `packs` calls, and
    `own_instructions`, None where there are none, or nobody who was told."""
    own = settings.own_instructions
    shown = shown_instructions(own, plan.masker)
    if shown is None or settings.provider is None:
        return {"own_instructions": None}
    compression: dict[str, Any] | None = None
    used = own
    if calls is not None:
        used = calls.outcome.text
        compression = saving(own, calls.outcome, packs, calls.counts, plan.masker)
    return {
        "instructions": instructions_hash(plan.language, used),
        "own_instructions": shown | {"compression": compression},
    }


def compression_warnings(said: Mapping[str, Any]) -> list[str]:
    """What to tell who asked for shorter instructions and did not get them. `said`: see `told`."""
    own = said["own_instructions"]
    compression = own and own["compression"]
    if not compression or compression["used"] or compression["reason"] in _EXPECTED:
        return []
    return [f"--compress-instructions: {compression_words(compression, Words('en'))}"]
