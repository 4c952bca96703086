"""The folders of runs below those that fupan.yaml names.

A run's id is made of its folder's name and a hash of where it is: what a client sends is looked up
among the ids there are, and never becomes part of a path.

Invariant: no symbolic link below a named folder is followed; a folder belongs to the entry that
names the nearest folder above it, and to no other; where a run is under way nothing is read; a
run is gone only where the folder that it was in was listed without it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from serve.search.errors import DamagedRun
from serve.search.folders import opened, stat_plain, why
from serve.search.settings import RunsSettings

DEPTH = 4
"""Levels below a named folder at which runs are looked for (team, year, month, day)."""
UNDER_WAY = ".fupan-run.json"
"""What the folder of a run holds until it ends (docs/output.md)."""
NEEDED = ("report.json", "themes.parquet", "ledger.json", "run.json")
"""What tells a finished run, beside its results."""
MARKS = frozenset((UNDER_WAY, "report.json", "run.json"))
"""A folder with one of these is a run's."""
RESULTS = "results"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME = 40
"""Characters of a folder's name in an id."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One folder that a run has left, or begun. `root`: the named folder that it is below, without
    links; `owner`: the tenant that sees it, or EVERYBODY; `named`: the named folder, as it is
    named."""

    id: str
    name: str
    root: str
    path: str
    owner: str
    named: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What is below the folders that fupan.yaml names. `runs`: by their paths; `unlisted`: folders
    of which that is not known now, and why; `owners`: see `owners_of`."""

    runs: list[RunFolder]
    unlisted: list[tuple[RunFolder, OSError]]
    owners: Mapping[str, str]

    def away(self, known: Iterable[RunFolder]) -> dict[RunFolder, str]:
        """Those of the runs `known` from before that were not found, and may be there yet, and why
        that is not known. A folder that is there and may have others is told of itself."""
        found = {run.id for run in self.runs}
        gone = [run for run in known if run.id not in found]
        told = {}
        for folder, error in self.unlisted:
            hidden = [now for run in gone if (now := self._hidden_in(folder, run)) is not None]
            if not hidden and not isinstance(error, FileNotFoundError):
                hidden = [folder]
            reason = f"its folder, or one above it, cannot be listed now: {why(error)}"
            told.update(dict.fromkeys(hidden, reason))
        return told

    def _hidden_in(self, folder: RunFolder, run: RunFolder) -> RunFolder | None:
        """A run that may be in an unlisted folder, as it would be found there; None: it is not."""
        roots = [root for root in self.owners if _is_within(run.path, root)]
        if not roots:
            # The link that led to it may be what is missing.
            led_to_it = folder.path == folder.root and folder.named == run.named
            return replace(run, owner=folder.owner) if led_to_it else None
        root = max(roots, key=len)
        if root != folder.root or not _is_within(run.path, folder.path):
            return None
        return replace(run, root=root, owner=self.owners[root])


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def owners_of(entries: Sequence[RunsSettings]) -> dict[str, str]:
    """Whose each named folder is, by its path without links. Raises ValueError where two entries
    name one folder and do not agree."""
    return {root: entry.owner for root, entry in _roots_of(entries).items()}


def _roots_of(entries: Sequence[RunsSettings]) -> dict[str, RunsSettings]:
    roots: dict[str, RunsSettings] = {}
    for entry in entries:
        first = roots.setdefault(os.path.realpath(entry.path), entry)
        if first.owner != entry.owner:
            raise ValueError(
                f"search.runs: {entry.path} is named twice, for {first.owner!r} and for "
                f"{entry.owner!r}: leave one of the entries"
            )
    return roots


def find_runs(entries: Sequence[RunsSettings]) -> Listing:
    """All folders of runs. Raises ValueError where two entries do not agree whose a folder is."""
    roots = _roots_of(entries)
    listing = Listing([], [], {root: entry.owner for root, entry in roots.items()})
    for root, entry in roots.items():
        named = shown_path(os.path.abspath(entry.path))
        for path, error in _below(root, DEPTH, roots.keys()):
            name = shown_path(os.path.basename(path))
            folder = RunFolder(_id_of(path), name, root, path, entry.owner, named)
            if error is None:
                listing.runs.append(folder)
            else:
                listing.unlisted.append((folder, error))
    listing.runs.sort(key=lambda run: run.path)
    return listing


def _below(folder: str, depth: int, roots: Collection[str]) -> Iterator[tuple[str, OSError | None]]:
    """Folders of runs, and those that cannot be listed, with why. What is below another of `roots`
    belongs to that one, even where it cannot be listed now."""
    try:
        with os.scandir(folder) as listing:
            inner = {entry.name: entry.is_dir(follow_symlinks=False) for entry in listing}
    except OSError as error:
        yield folder, error
        return
    if not MARKS.isdisjoint(inner):
        yield folder, None
        return
    if depth == 0:
        return
    for name in sorted(inner):
        path = os.path.join(folder, name)
        if inner[name] and not name.startswith(".") and path not in roots:
            yield from _below(path, depth - 1, roots)


def shown_path(path: str) -> str:
    """A path as it can be told of: with what is no UTF-8 replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _id_of(path: str) -> str:
    name = _UNSAFE.sub("-", os.path.basename(path))[:_NAME].strip(".-") or "run"
    return f"{name}-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"


def is_under_way(run: RunFolder) -> bool:
    """Whether a run is under way there, or was broken off. Raises OSError."""
    with opened(run.root, run.path) as folder:
        try:
            os.stat(UNDER_WAY, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def result_files(run: RunFolder) -> list[str]:
    """The paths of the files of a finished run's results. Raises DamagedRun for a run that is none,
    and OSError."""
    return [os.path.join(run.path, RESULTS, name) for name in _results(run)]


def _results(run: RunFolder) -> dict[str, os.stat_result]:
    if shown_path(run.path) != run.path:
        raise DamagedRun("the path of its folder is not UTF-8: rename it")
    if is_under_way(run):
        raise DamagedRun("a run is under way here, or was broken off: the same command ends it")
    with opened(run.root, run.path) as folder:
        for name in NEEDED:
            if stat_plain(folder, name) is None:
                raise DamagedRun(f"{name} is missing: a run that did not end, or a part of one")
    try:
        with opened(run.root, os.path.join(run.path, RESULTS)) as folder:
            found = {}
            for name in sorted(os.listdir(folder)):
                if name.endswith(".parquet"):
                    seen = stat_plain(folder, name)
                    if seen is None:
                        raise DamagedRun(f"{RESULTS}/{shown_path(name)} is no file")
                    found[name] = seen
            return found
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedRun(f"the folder {RESULTS} is missing") from error


def fingerprint(run: RunFolder) -> str:
    """What differs where the rows or themes of a finished run do. Raises DamagedRun and OSError."""
    seen = _results(run)
    with opened(run.root, run.path) as folder:
        themes = stat_plain(folder, "themes.parquet")
    if themes is None:
        raise DamagedRun("themes.parquet is missing")
    state = blake2b(digest_size=8)
    for name, each in {**seen, "themes.parquet/": themes}.items():
        told = f"{each.st_size}/{each.st_mtime_ns}/{each.st_ino}\n"
        state.update(os.fsencode(name) + b"/" + told.encode())
    return state.hexdigest()
