"""The first records of each file, cleaned: what a plan shows, and what it warns of.

Invariant: a bounded look; nothing here decides what a run does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from job.clean.cleaner import Cleaner, CleanSettings
from job.clean.nested import opened
from job.clean.shape import at_path, shape_of
from job.read import FilePlan
from job.records import Raw, Record, Rejected, SliceCounts

SHOWN_RECORDS = 3
_HUGE = 1 << 20
"""Characters of a record that is not looked at."""
_NAMED_FILES = 3
"""Files that a warning names; the others it counts."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Of one file: `langs` of its first records, `shown`, three of them, and `absent`, the parts
    of its input's map whose field none of them has. `fields`: whether they have any."""

    file: FilePlan
    langs: Mapping[str, int]
    shown: tuple[Record, ...]
    absent: tuple[str, ...]
    fields: bool


def first_look(file: FilePlan, settings: CleanSettings) -> FirstLook:
    """Clean the first records of a file, those too that a filter will leave out."""
    unfiltered = replace(settings, since=None, until=None, skip=())
    cleaner = Cleaner(unfiltered, SliceCounts(file.source, 0))
    langs: Counter[str] = Counter()
    shown: list[Record] = []
    absent = dict(settings.map)
    fields = False
    for raw in file.sample:
        if _is_huge(raw):
            continue
        cleaned = cleaner.clean(raw)
        if isinstance(value := getattr(raw, "value", None), dict):
            fields = True
            for part in [part for part, name in absent.items() if _has(value, name)]:
                del absent[part]
        if isinstance(cleaned, Record):
            langs[cleaned.lang] += 1
            if len(shown) < SHOWN_RECORDS:
                shown.append(cleaned)
    return FirstLook(file, langs, tuple(shown), tuple(absent), fields)


def _is_huge(raw: Raw | Rejected) -> bool:
    """Whether a record takes seconds to clean, which a look is not worth."""
    if isinstance(raw, Rejected):
        return False
    values = raw.value.values() if isinstance(raw.value, dict) else [raw.value]
    return sum(len(value) for value in values if isinstance(value, str)) > _HUGE


def _has(value: dict[str, Any], name: str) -> bool:
    """Whether a record has a field, also inside its message or in the messages of a chat."""
    data = opened(value, shape_of(tuple(value)))[0]
    if at_path(data, name):
        return True
    rows = value.get("messages")
    return isinstance(rows, list) and any(
        isinstance(row, Mapping) and at_path(row, name) is not None for row in rows
    )


def warnings_of(
    looks: Sequence[FirstLook], maps: Sequence[Mapping[str, str]], paths: Sequence[str]
) -> tuple[str, ...]:
    """What a user should know before a run: fields that are not there, files that are damaged or
    hold nothing. `maps` and `paths`: of the inputs."""
    said: list[str] = []
    for index, mapping in enumerate(maps):
        looked = [look for look in looks if look.file.input == index and look.langs]
        for part, name in mapping.items():
            without = [look for look in looked if part in look.absent]
            if without:
                kind = "" if any(look.fields for look in without) else " (plain text has no fields)"
                said.append(
                    f"input {paths[index]}: map names the field {name!r} for {part}, which no "
                    f"record looked at has in {_names(without, len(looked))}{kind}"
                )
    damaged = [look for look in looks if look.file.problem]
    said += [f"{look.file.source}: {look.file.problem}" for look in damaged[:_NAMED_FILES]]
    if len(damaged) > _NAMED_FILES:
        said.append(f"{len(damaged) - _NAMED_FILES:,} more files are damaged or cannot be read")
    for name, what in (("binary", "no text and will be rejected"), ("empty", "nothing")):
        alike = [look for look in looks if look.file.format.name == name]
        if found := [look for look in alike if not look.file.problem]:
            said.append(f"{_names(found, len(looks))} hold {what}")
    return tuple(said)


def _names(looks: Sequence[FirstLook], total: int) -> str:
    names = ", ".join(look.file.source for look in looks[:_NAMED_FILES])
    more = ", ..." if len(looks) > _NAMED_FILES else ""
    return f"{len(looks):,} of {total:,} files ({names}{more})"
