"""Files below a named folder, opened so that no symbolic link leads out of it.

The named folder is opened first, then each folder below it by the descriptor of the one above, and
never through a link: a folder that somebody swaps for a link meanwhile is not followed either.

Invariant: what is read, listed or told of is below the named folder itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def opened(root: str, path: str) -> Iterator[int]:
    """The descriptor of the folder `path`, which is `root` or below it. Raises OSError."""
    at = os.open(root, _FOLDER)
    try:
        below = os.path.relpath(path, root)
        for name in () if below == os.curdir else below.split(os.sep):
            if name == os.pardir:
                raise NotADirectoryError(f"not below the named folder: {path!r}")
            above, at = at, os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(above)
        yield at
    finally:
        os.close(at)


def open_plain(root: str, path: str) -> BinaryIO:
    """The plain file `path` below `root`. Raises OSError for what is not there or is none."""
    with opened(root, os.path.dirname(path)) as folder:
        file = os.fdopen(os.open(os.path.basename(path), _FILE, dir_fd=folder), "rb", buffering=0)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise FileNotFoundError(f"no plain file: {path!r}")


def stat_plain(folder: int, name: str) -> os.stat_result | None:
    """Of the plain file `name` in an open folder; None: it is not there, or is none. Raises
    OSError."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def why(error: OSError) -> str:
    """What is wrong, without the path, which is nobody's to see."""
    return error.strerror or type(error).__name__
