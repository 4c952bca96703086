"""Who holds the folder of a run.

Invariant: at most one live run holds it, and a dead one not for long. On this machine that is a
file lock, which ends with the process that took it. Object storage has no locks, and `pyarrow` no
conditional puts: there it is a lease (`lease.py`), which ends when nobody renews it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from job.errors import OutputInUse
from job.storage.lease import LOCK, Lease
from job.storage.place import Place

Check = Callable[[], None]
"""Raises OutputInUse where the folder is no longer held."""


@contextmanager
def hold(root: Place) -> Iterator[Check]:
    """Hold the folder `root`, which is made if there is none. Raises OutputInUse if a live run
    does, OSError where nothing can be written."""
    if not root.is_local:
        with Lease.taken(root) as lease:
            yield lease.check
        return
    os.makedirs(root.path, exist_ok=True)
    descriptor = os.open(f"{root.path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputInUse(
                f"{root} is in use by another run; wait for it or name another --out"
            ) from error
        yield lambda: None
    finally:
        os.close(descriptor)
