"""A folder in the user's cache for what takes long to convert from a file.

Invariant: the folder appears whole or not at all, and one process at a time converts; whatever is
wrong with the cache costs the time of a conversion, never the model.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_READABLE = 0o755
"""The folder's mode; temporary ones are made for their owner alone."""
_log = logging.getLogger(__name__)


def kept(
    place: Callable[[], Path],
    convert: Callable[[], T],
    save: Callable[[T, Path], None],
    read: Callable[[Path], T],
) -> T:
    """What `read` gives of the folder at `place()`, else what `convert` gives, which `save` then
    writes there for the next process. Raises what `convert` does."""
    try:
        folder = place()
    except RuntimeError as error:  # a user without a home
        _warn(error)
        return convert()
    if (found := _found(folder, read)) is not None:
        return found
    with _alone(folder) as alone:
        # Whoever was first has made it.
        if (found := _found(folder, read)) is not None:
            return found
        made = convert()
        if alone:
            try:
                _keep(folder, lambda where: save(made, where))
            except Exception as error:  # each library has one of its own for a full disk
                _warn(error)
        return made


def _found(folder: Path, read: Callable[[Path], T]) -> T | None:
    """What is in `folder`; None where there is nothing, or nothing that can be read."""
    if not folder.is_dir():
        return None
    try:
        return read(folder)
    except Exception as error:
        _log.warning("%s cannot be read and is made anew: %s", folder, error)
        return None


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """One process at a time, whichever machines share the folder. False: there can be no lock."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f"{folder.name}.lock").open("a")
    except OSError as error:
        _warn(error)
        yield False
        return
    with lock:  # let go of when it is closed, or its process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            _warn(error)
            yield False
        else:
            yield True


def _keep(folder: Path, save: Callable[[Path], None]) -> None:
    """Write `folder`, in place of what is there. Only while alone."""
    unfinished = f"tmp-{folder.name}-"
    for left in folder.parent.glob(f"{unfinished}*"):
        shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
    made = Path(tempfile.mkdtemp(prefix=unfinished, dir=folder.parent))
    try:
        whole = made / "whole"
        whole.mkdir()
        save(whole)
        whole.chmod(_READABLE)
        for each in (*whole.rglob("*"), whole):
            _sync(each)
        if folder.exists():
            folder.rename(made / "damaged")
        whole.rename(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sync(path: Path) -> None:
    """What was written there is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _warn(error: Exception) -> None:
    _log.warning("what was converted cannot be kept, and will be converted again: %s", error)
