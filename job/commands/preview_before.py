"""What the run that is planned will take over of an earlier one in its folder. Reads only.

Invariant: the folder itself says whether the same run goes on, by the rules by which a run begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from job.config import Settings
from job.planning import RunPlan
from job.run_folder import RunFolder
from job.run_json import identity
from job.trial.canary import Canary, kept_canary


@dataclass(frozen=True, slots=True)
class TakenOver:
    """`canary`: the verdict of an earlier command of the run; `recalls`: whether any answer is
    recalled; `since`: only what was stored since then is (seconds since the epoch; None: all)."""

    canary: Canary | None
    recalls: bool
    since: float | None


def taken_over(settings: Settings, plan: RunPlan) -> TakenOver:
    """What the run takes over. Raises UsageError where the folder cannot be read."""
    folder = RunFolder(settings.out)
    before = folder.before(identity(settings, plan), settings.fresh)
    wanted = settings.canary is not None and before.kept
    canary = kept_canary(folder) if wanted else None
    return TakenOver(canary, not settings.fresh or before.kept, before.since)
