"""Foreign errors -> errors of the job, in the one place where they leave the command.

Invariant: what is told is one line: what happened, where, and what to do. An error of this process
that nobody expected stays what it is, with its trace.
"""

from __future__ import annotations

import errno
import sqlite3

from job.errors import JobError
from job.storage.store import store_words
from serve.ask.answers_file import StoreError
from serve.ask.errors import AskError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_RAYS_ADVICE = "Failed to apply UDF transform"
"""Begins what Ray Data appends to the message of an error inside one of its tasks."""


def as_job_error(error: BaseException) -> JobError | None:
    """`error` as one of the job's; None for one that nobody expected."""
    from_task = _is_rays(error)
    error = _root(error)
    said = _one_line(error)
    if isinstance(error, JobError):
        return type(error)(said)
    if isinstance(error, AskError):
        return JobError(error.message)
    if is_disk_full(error):
        return JobError(
            f"the disk is full: {said}. Make room where --out and --answers are; the same command "
            "goes on from here"
        )
    if isinstance(error, OSError):
        return JobError(store_words(error) or said)
    if isinstance(error, sqlite3.Error):
        return JobError(f"the store of answers (--answers) failed: {said}")
    if isinstance(error, StoreError):
        return JobError(f"the store of answers (--answers) failed: {said}")
    if from_task:
        return JobError(f"{type(error).__name__}: {said} (FUPAN_TRACEBACK=1 shows where)")
    return None


def is_disk_full(error: BaseException) -> bool:
    """Whether there was no room left to write."""
    if isinstance(error, OSError):
        return error.errno in _FULL or "No space left on device" in str(error)
    return isinstance(error, sqlite3.Error) and "disk is full" in str(error)


def _root(error: BaseException) -> BaseException:
    """What happened inside a task of Ray, below the wrappers it comes in."""
    while _is_rays(error):
        inner = getattr(error, "cause", None)
        if not isinstance(inner, BaseException) or inner is error:
            break
        error = inner
    return error


def _is_rays(error: BaseException) -> bool:
    # Without a look into Ray, which takes a second to import and may not have been.
    return any(kind.__module__.startswith("ray.") for kind in type(error).__mro__)


def _one_line(error: BaseException) -> str:
    """The error's own words."""
    if isinstance(error, OSError) and error.strerror:
        named = str(error.filename or "")
        # The advice takes the place of the file's name.
        return (
            f"{error.strerror}: {named}"
            if named and _RAYS_ADVICE not in named
            else (error.strerror)
        )
    lines = [line.strip() for line in str(error).partition(_RAYS_ADVICE)[0].splitlines()]
    lines = [line for line in lines if line] or [type(error).__name__]
    # A wrapper of Ray's that holds no cause has the trace as its message, the error in the end.
    return lines[-1] if _is_rays(error) else " ".join(lines)
