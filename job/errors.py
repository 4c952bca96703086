"""Errors of the batch job.

    JobError                 says what, where, and what to do now; carries its exit code
     +- UsageError            2   wrong usage, configuration or key
     |   +- InputError         2   an input path that cannot be read or does not exist
     |   `- OutputInUse        2   the output folder belongs to another run or other settings
     +- StoppedEarly          4   cap, deadline, quota, interrupt: a partial report was written
     +- TooManyFailed         3   finished, but more records failed than allowed
     `- LedgerError           1   the account does not balance: a bug, or a damaged output

Invariant: every error that leaves `job` is one of these; `cli.py` is the only place that turns
them into an exit code. Each survives pickling between processes (plain arguments only).
"""

from __future__ import annotations


class JobError(Exception):
    """Base of all errors of the job. `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(JobError):
    """The command, the configuration or a key is wrong; nothing was done."""

    exit_code = 2


class InputError(UsageError):
    """An input cannot be read: names the path and what is the matter with it."""


class OutputInUse(UsageError):
    """The output folder is held by a running job or holds a different run."""


class StoppedEarly(JobError):
    """The run ended before every record was asked; what it had is kept and reported."""

    exit_code = 4


class TooManyFailed(JobError):
    """More records failed than `--max-failed` allows; the report is complete otherwise."""

    exit_code = 3


class LedgerError(JobError):
    """The numbers of the run do not add up."""
