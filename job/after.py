"""What a user should know after everything was read.

Invariant: said from counts of the whole run, never from a sample; it changes no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from job.read import FilePlan

OUTSIDE_SHARE = 0.9
"""Of the records outside --since and --until, from which they are worth a warning."""
_NAMED_FILES = 3


def grown(files: Iterable[FilePlan]) -> dict[str, int]:
    """Bytes by which files have grown since they were planned: they are not in the run, but for
    the end of a record that had begun."""
    found = {}
    for file in files:
        with suppress(OSError), file.location.open() as now:
            if (more := now.size() - file.size) > 0:
                found[file.source] = more
    return found


def closing_warnings(
    counts: Mapping[str, Any],
    window: tuple[datetime | None, datetime | None],
    more: Mapping[str, int],
) -> list[str]:
    """What is worth a warning. `counts`: `read` and `skipped_by` of all files; `window`: `since`
    and `until`; `more`: what `grown` says."""
    said = []
    outside = sum(counts["skipped_by"].get(name, 0) for name in ("since", "until"))
    if outside and outside >= OUTSIDE_SHARE * counts["read"]:
        since, until = (moment.isoformat() if moment else "open" for moment in window)
        said.append(
            f"{outside:,} of {counts['read']:,} records lie outside the window of --since and "
            f"--until ({since} to {until}): look at the day and the time zone"
        )
    if more:
        names = ", ".join(list(more)[:_NAMED_FILES]) + (", ..." if len(more) > _NAMED_FILES else "")
        said.append(
            f"{len(more):,} files grew by {sum(more.values()):,} bytes while they were read "
            f"({names}): what was added is not in this report"
        )
    return said
