"""How errors from outside are told."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from ray.exceptions import RayError, RayTaskError

from job.boundary import as_job_error
from job.errors import LedgerError, UsageError
from serve.ask.errors import Misconfigured

ADVICE = "\nFailed to apply UDF transform after 1/1 attempts.\nTo change retry attempts, ..."


def from_task(cause: Exception) -> Exception:
    """The error as Ray raises it where a task failed with `cause`."""
    trace = f"Traceback (most recent call last):\n  File ...\n{cause!r}"
    raised: Exception = RayTaskError("task", trace, cause).as_instanceof_cause()
    return raised


FULL = OSError(errno.ENOSPC, "No space left on device", "/out/x.parquet")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (UsageError("wrong"), 2, "wrong"),
        (from_task(LedgerError("lost 2" + ADVICE)), 1, "lost 2"),
        (FULL, 1, "the disk is full: No space left on device: /out/x.parquet. Make room"),
        (from_task(FULL), 1, "the disk is full: No space left on device: /out/x.parquet"),
        (sqlite3.OperationalError("database or disk is full"), 1, "the disk is full"),
        (sqlite3.OperationalError("disk I/O error"), 1, "the store of answers (--answers) failed"),
        (
            PermissionError(errno.EACCES, "Permission denied", "a.log"),
            1,
            "Permission denied: a.log",
        ),
        (from_task(ValueError("odd\nvalue")), 1, "ValueError: odd value (FUPAN_TRACEBACK=1"),
        (Misconfigured("no such model", 404), 1, "no such model"),
        (RayError("the actor died"), 1, "the actor died"),
    ],
)
def test_an_error_is_one_line_with_its_code(error: Exception, kind: int, said: str) -> None:
    known = as_job_error(error)
    assert known is not None
    assert known.exit_code == kind
    assert said in str(known)
    assert "\n" not in str(known)
    assert "Traceback" not in str(known)


def test_the_same_command_goes_on_after_a_full_disk() -> None:
    assert "the same command goes on" in str(as_job_error(FULL))


def test_an_error_of_our_own_making_keeps_its_trace() -> None:
    assert as_job_error(KeyError("x")) is None
