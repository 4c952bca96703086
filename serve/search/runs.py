"""The folders of runs below those that fupan.yaml names.

A run's id is made of its folder's name and a hash of where it is: what a client sends is looked up
among the ids there are, and never becomes part of a path.

Invariant: no symbolic link below a named folder is followed; a folder belongs to the entry that
names the nearest folder above it, and to no other; where a run is under way nothing is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from serve.search.errors import DamagedRun
from serve.search.settings import RunsSettings

DEPTH = 4
"""Levels below a named folder at which runs are looked for (team, year, month, day)."""
UNDER_WAY = ".fupan-run.json"
"""What the folder of a run holds until it ends (docs/output.md)."""
NEEDED = ("report.json", "themes.parquet", "ledger.json", "run.json")
"""What tells a finished run, beside its results."""
RESULTS = "results"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME = 40
"""Characters of a folder's name in an id."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One folder that a run has left, or begun. `owner`: the tenant that sees it, or EVERYBODY."""

    id: str
    name: str
    path: str
    owner: str


def find_runs(entries: Sequence[RunsSettings]) -> list[RunFolder]:
    """All folders of runs, by their paths. One that cannot be listed is as if it were empty."""
    owners = {os.path.realpath(entry.path): entry.owner for entry in entries}
    found: dict[str, RunFolder] = {}
    # The nearest named folder above a run is the longest path to it.
    for root in sorted(owners, key=len):
        for path in _below(root, DEPTH):
            found[path] = RunFolder(_id_of(path), os.path.basename(path), path, owners[root])
    return [found[path] for path in sorted(found)]


def _below(folder: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as listing:
            entries = {entry.name: entry for entry in listing}
    except OSError:
        return
    if UNDER_WAY in entries or any(name in entries for name in (*NEEDED, RESULTS)):
        yield folder
        return
    if depth == 0:
        return
    for name in sorted(entries):
        if not name.startswith(".") and entries[name].is_dir(follow_symlinks=False):
            yield from _below(os.path.join(folder, name), depth - 1)


def _id_of(path: str) -> str:
    name = _UNSAFE.sub("-", os.path.basename(path))[:_NAME].strip(".-") or "run"
    return f"{name}-{blake2b(os.fsencode(path), digest_size=4).hexdigest()}"


def result_files(run: RunFolder) -> list[Path]:
    """The files of a finished run's results. Raises DamagedRun for a run that is none."""
    root = Path(run.path)
    if (root / UNDER_WAY).exists():
        raise DamagedRun("a run is under way here, or was broken off: the same command ends it")
    for name in NEEDED:
        if not _is_plain(root / name):
            raise DamagedRun(f"{name} is missing: a run that did not end, or a part of one")
    if not (root / RESULTS).is_dir() or (root / RESULTS).is_symlink():
        raise DamagedRun(f"the folder {RESULTS} is missing")
    files = sorted((root / RESULTS).glob("*.parquet"))
    for file in files:
        if not _is_plain(file):
            raise DamagedRun(f"{RESULTS}/{file.name} is no file")
    return files


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def fingerprint(run: RunFolder) -> str:
    """What differs where the rows or themes of a finished run do. Raises DamagedRun."""
    state = blake2b(digest_size=8)
    for file in (*result_files(run), Path(run.path) / "themes.parquet"):
        try:
            seen = file.stat()
        except OSError as error:
            raise DamagedRun(f"{file.name} cannot be read: {error.strerror}") from error
        state.update(f"{file.name}/{seen.st_size}/{seen.st_mtime_ns}/{seen.st_ino}\n".encode())
    return state.hexdigest()
