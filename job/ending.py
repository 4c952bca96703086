"""How a run ends: why it is partial, its exit code, what its user should know.

Invariant: said from the ledger of the whole run; a run that left a record unasked is partial
whatever the reason.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from job.after import closing_warnings, grown
from job.config import Settings
from job.errors import JobError, StoppedEarly, TooManyFailed
from job.planning import RunPlan
from job.progress import View
from job.ration.deadline import REACHED


def closing_words(settings: Settings, plan: RunPlan, ledger: dict[str, Any]) -> list[str]:
    """What a user should know of how the inputs were read."""
    skipped: Counter[str] = Counter()
    for source in ledger["sources"]:
        skipped.update(source["skipped_by"])
    counts = {"read": ledger["read"], "skipped_by": skipped}
    window = settings.since, settings.until
    return [*plan.warnings, *closing_warnings(counts, window, grown(plan.files))]


def why_stopped(view: View, ledger: dict[str, Any], cap: str = "") -> str | None:
    """Why the run is partial; None if it is complete. A record that was not asked makes it partial
    whatever the reason. `cap`: the words for a cap that was reached, be it for some of the models.
    """
    if view.stop is None and ledger["unasked"]:
        if view.asking.late:
            return REACHED
        refused = (view.facts.get("spend") or {}).get("refused")
        return cap if refused else "not every record was asked"
    if view.stop in (REACHED, cap) and not ledger["unasked"]:
        return None
    return view.stop


def exit_error(settings: Settings, ledger: dict[str, Any], stopped: str | None) -> JobError | None:
    """What the exit code of a finished run comes from; None for 0. `stopped`: see `why_stopped`."""
    if stopped is not None:
        more = " with a higher --max-spend" if ledger["spend"]["capped"] else ""
        return StoppedEarly(
            f"stopped early: {stopped}. {ledger['unasked']:,} records were not asked; "
            f"the same command{more} goes on from here"
        )
    share = ledger["failed"] / ledger["records"] if ledger["records"] else 0.0
    if share > settings.max_failed:
        return TooManyFailed(
            f"{ledger['failed']:,} records failed ({share:.2%}, allowed are "
            f"{settings.max_failed:.2%}); see failed.jsonl in {settings.out}"
        )
    return None
