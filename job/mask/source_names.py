"""Names of files as records, reports and run.json show them.

Invariant: what is private in a name is an alias, as in any text; two files never share a name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from job.mask.masking import Masker
from job.read import FilePlan, Plan


def with_shown_names(plan: Plan, masker: Masker) -> Plan:
    """`plan` with what is private in the names of its files masked; the files themselves are still
    found by their `location`."""
    names = [masker.mask(file.source)[0] for file in plan.files]
    if all(name == file.source for name, file in zip(names, plan.files, strict=True)):
        return plan
    seen: Counter[str] = Counter()
    files = []
    for name, file in zip(names, plan.files, strict=True):
        seen[name] += 1
        files.append(_named(file, f"{name}#{seen[name]}" if seen[name] > 1 else name))
    return replace(plan, files=tuple(files))


def _named(file: FilePlan, name: str) -> FilePlan:
    slices = tuple(replace(part, source=name) for part in file.slices)
    return replace(file, source=name, slices=slices)
