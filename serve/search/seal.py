"""Whether the files of a folder are the ones that were left there.

Invariant: nothing is read but the folder itself, so that it can be asked of every folder every few
seconds; what is changed, replaced or removed by ordinary means is seen.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path


def marks(folder: Path) -> dict[str, str]:
    """What differs where a file in `folder` does, by the files' names, sorted (not in folders
    below). A folder that is not there, or is none, is as if it were empty. Raises OSError."""
    try:
        with os.scandir(folder) as listing:
            seen = {
                entry.name: entry.stat(follow_symlinks=False)
                for entry in listing
                if entry.is_file(follow_symlinks=False)
            }
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {name: f"{s.st_size}/{s.st_mtime_ns}/{s.st_ino}" for name, s in sorted(seen.items())}


def seal(folder: Path) -> str:
    """What differs where one of the `marks` of `folder` does. Raises OSError."""
    state = blake2b(digest_size=8)
    for name, mark in marks(folder).items():
        state.update(os.fsencode(name) + f"/{mark}\n".encode())
    return state.hexdigest()
