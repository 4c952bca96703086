"""The files that belong to a store of answers: what no command may read as an input or replace.

Invariant: nothing here opens a file; one that is not there yet is named too.
"""

from __future__ import annotations

import os
from pathlib import Path

from serve.ask.answers_repair import files_set_aside
from serve.ask.spend_journal import FILE

KEY_FILE = "mask.key"
"""Beside the answers: an alias must be the same in every run, or nothing would be recalled."""
_SIDES = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps of one file."""


def files_of(answers: Path) -> list[Path]:
    """The store at `answers`, the account of spend and the key beside it with all that belongs to
    them, and damaged stores set aside: beside the name, and beside the file that it links to."""
    found = []
    for path in dict.fromkeys((answers, Path(os.path.realpath(answers)))):
        found += [path.with_name(name + side) for name in (path.name, FILE) for side in _SIDES]
        found += [path.with_name(KEY_FILE), *files_set_aside(path)]
    return found


def is_of(answers: Path, path: str) -> bool:
    """Whether `path` is one of `files_of(answers)`, by whatever spelling or link."""
    return any(_is_same(path, file) for file in files_of(answers))


def _is_same(path: str, file: Path) -> bool:
    try:
        return os.path.samefile(path, file)
    except OSError:
        # One of them is not there yet.
        return os.path.realpath(path) == os.path.realpath(file)
