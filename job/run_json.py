"""run.json: what a run was told and what it read.

Invariant: nothing in it is a secret; `identity` is all that a later run must share to go on in the
same folder, and changes with nothing else.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from job.config import Settings
from job.instructions import instructions_hash
from job.mask.masking import Masker
from job.planning import RunPlan
from job.printable import encodable
from serve.ask.uris import without_secrets


def identity(settings: Settings, plan: RunPlan) -> dict[str, Any]:
    """What must be equal for a run to go on in its folder. Rates, caps and where the answers are
    kept are not part of it (DESIGN 6)."""
    whole: dict[str, Any] = {
        # Not where they are: a checkout that is uploaded again lies in another folder each time.
        "inputs": [{k: v for k, v in row.items() if k != "path"} for row in plan.fingerprints],
        "provider": settings.provider.base_url if settings.provider else settings.provider_name,
        "model": settings.model,
        "mode": settings.mode,
        "language": plan.language,
        "instructions": instructions_hash(plan.language, settings.own_instructions),
        "compress_instructions": settings.compress_instructions,
        "timezone": str(settings.zone),
        "date": settings.explicit_date,
        "since": settings.since,
        "until": settings.until,
        "kinds": settings.kinds,
        "sample": settings.sample,
        "mask": settings.mask,
        "privacy": settings.privacy.model_dump(exclude={"keep_days"}),
        "inputs_as": [spec.model_dump(exclude={"path"}) for spec in settings.inputs],
    }
    if settings.canary is not None:
        whole["canary"] = settings.canary
    return {name: _without_private(value, plan.masker) for name, value in whole.items()}


def run_json(
    settings: Settings,
    plan: RunPlan,
    started: datetime,
    json_mode: str | None,
    stopped: str | None,
) -> dict[str, Any]:
    """run.json. `json_mode`: how answers were asked for; `stopped`: why the run is partial."""
    settings_of = identity(settings, plan)
    return {
        "version": version("fupan"),
        "started": started,
        "finished": datetime.now(UTC),
        "command": _without_private(
            [encodable(without_secrets(word)) for word in sys.argv[1:]], plan.masker
        ),
        "provider": settings.provider_name,
        "model": settings.model,
        "language": plan.language,
        "timezone": str(settings.zone),
        "date": settings.reference,
        "mode": settings.mode,
        "instructions": settings_of["instructions"],
        "inputs": plan.fingerprints,
        "ignored": plan.ignored,
        "baseline": _without_private(settings.baseline, plan.masker),
        "known": str(settings.known) if settings.known else None,
        "settings": {
            "json_mode": json_mode,
            "mask": settings.mask,
            "sample": settings.sample,
            "since": settings.since,
            "until": settings.until,
            "pack_tokens": settings.pack_tokens,
            "deadline": settings.deadline,
        },
        "stopped": {"reason": stopped} if stopped else None,
        "identity": settings_of,
    }


def _without_private(value: Any, masker: Masker) -> Any:
    """`value` with every text in it masked."""
    match value:
        case str():
            return masker.mask(value)[0]
        case dict():
            return {name: _without_private(inner, masker) for name, inner in value.items()}
        case list() | tuple():
            return [_without_private(inner, masker) for inner in value]
    return value
