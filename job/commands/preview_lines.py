"""The plan of a run in words.

Invariant: nothing of a log's text is interpreted by the terminal; every number that is foreseen is
told with its range and where it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from job.commands.preview_found import SHOWN_FILES, Preview
from job.printable import printable

_UNNAMED = ("time", "kind", "text")


def preview_lines(found: Preview, show_request: bool) -> list[str]:
    """The plan in words."""
    lines = [*_files(found), *_records(found), *_calls(found)]
    lines += [f"own rules {found.instructions}"] if found.instructions else []
    lines.append(f"language  {found.language}")
    lines += [f"warning   {warning}" for warning in found.warnings]
    if show_request and found.first_request is not None:
        request = found.first_request
        lines += ["", "--- system", *request.system.split("\n")]
        lines += ["--- user", *request.user.split("\n")]
    return [printable(line) for line in lines]


def _files(found: Preview) -> list[str]:
    lines = ["files"]
    for file in found.files:
        how = ", ".join(filter(None, (file["format"], file["encoding"], file["compression"])))
        lines.append(
            f"  {file['source']}: {how}; {file['records']:,} records, {file['rejected']:,} rejected"
            + _reasons(file.get("rejected_by", {}))
            + (f", {file['skipped']:,} skipped" if file.get("skipped") else "")
            + _reasons(file.get("skipped_by", {}))
        )
        lines += map(_line_of, file.get("first", ()))
    if found.ignored:
        lines.append(f"  {found.ignored:,} entries ignored: hidden, no files, or written by runs")
    if len(found.files) > SHOWN_FILES:
        lines.append(f"  (the first records of {SHOWN_FILES} files are shown)")
    return lines


def _records(found: Preview) -> list[str]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.kinds.items()))
    masked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.masked.items()))
    return [
        f"read      {found.read:,} = {found.records:,} records + {found.rejected:,} rejected"
        f" + {found.skipped:,} skipped" + _reasons(found.skipped_by),
        f"kinds     {kinds or 'none'}",
        f"masked    {masked or 'nothing'}",
        f"to ask    {found.to_ask:,} ({found.folded:,} folded, {found.recalled:,} recalled)",
    ]


def _calls(found: Preview) -> list[str]:
    """What the calls take: the expectation, and in brackets its range."""
    if not found.packs:
        return [f"minutes   ({found.bounded or 'nothing to ask'})"]
    parts = [f"{count:,} {lane}" for lane, count in sorted(found.packs.items())]
    parts += [f"{found.canary:,} of the canary about single records"] if found.canary else []
    parts.append(f"{found.naming:,} to name themes")
    lines = [
        f"calls     about {found.calls:,} ({', '.join(parts)}) to {found.model}",
        f"tokens    about {found.tokens_in:,} in ({_between(found.ranges['tokens_in'], 0)}),"
        f" {found.tokens_out:,} out ({_between(found.ranges['tokens_out'], 0)})",
    ]
    if found.cost is not None:
        digits = 2 if found.cost >= 1 else 4
        lines.append(
            f"cost      about {found.cost:,.{digits}f} {found.currency}"
            f" ({_between(found.ranges['cost'], digits)}), at {found.prices}"
        )
    lines += [
        f"minutes   about {_minutes(found.minutes)} ({_between(found.ranges['minutes'], 1)}),"
        f" {_minutes(found.asking_minutes)} of them with calls"
        f" ({_between(found.ranges['asking_minutes'], 1)}): {found.bounded}",
        f"foreseen  {_basis(found.earlier_runs)}",
    ]
    return lines


def _basis(runs: int) -> str:
    if not runs:
        return "from a guess: no earlier run has asked this model so"
    return f"from {runs:,} earlier run{'s' if runs > 1 else ''}"


def _between(ends: Sequence[float], digits: int) -> str:
    low, high = (end * 10**digits for end in ends)
    outside = math.floor(low) / 10**digits, math.ceil(high) / 10**digits
    return " to ".join(f"{end:,.{digits}f}" for end in outside)


def _minutes(minutes: float) -> str:
    return f"{math.ceil(minutes * 10) / 10:,}"


def _reasons(counts: dict[str, int]) -> str:
    named = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    return f" ({named})" if named else ""


def _line_of(shown: dict[str, Any]) -> str:
    """A record in one line."""
    fields = [f"{name}={value}" for name, value in shown.items() if name not in _UNNAMED]
    about = " ".join([shown.get("time", "no time"), shown["kind"], *fields])
    return f"      {about} | {shown['text']}"
