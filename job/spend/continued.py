"""Whether a run goes on with the account of what it has spent, and not with another.

Invariant: no cap is kept by an account that may lack what an earlier command of the run spent: the
folder names the last command, and the account has to know it.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from pathlib import Path
from typing import Any

import orjson

from job.errors import UsageError
from job.run_folder import SPENDER, RunFolder
from job.write import write_json
from serve.ask.spend_journal import SpendJournal

BEGIN_ANEW = "begin anew in another --out, which recalls the answers that are stored"


def go_on(folder: RunFolder, journal: Path, capped: bool) -> tuple[str, str]:
    """Under which names the run in `folder`, and this command of it, spend; the command is written
    down in the account at `journal`, then in the folder. `capped`: it has a cap.

    Raises UsageError where the run has spent by another account, where a cap is to hold and the
    account lacks an earlier command, and where it cannot be written or read.
    """
    run, kept_in = folder.spender(str(journal))
    held = _held(folder)
    last, lacks = held.get("command"), is_lacking(folder)
    if kept_in != str(journal):
        if _has_spent(Path(kept_in), run):
            raise UsageError(
                f"what this run has spent is written down in {kept_in}, not in {journal}. Name the "
                f"--answers of its first command, or {BEGIN_ANEW}"
            )
        last = None
    command = uuid.uuid4().hex
    try:
        with SpendJournal(journal) as account:
            lacks = lacks or (last is not None and not account.knows(run, last))
            if lacks and capped:
                raise UsageError(
                    f"--max-spend: what earlier commands of this run have spent is not written "
                    f"down in {journal} any more. Put the file back that was there, go on without "
                    f"a cap, or {BEGIN_ANEW}"
                )
            for _ in account.rows(run):
                pass
            account.start(run, command, time.time())
    except sqlite3.Error as error:
        raise damaged(journal, error) from error
    try:
        spender = {"run": run, "journal": str(journal), "command": command, "lacks": lacks}
        write_json(folder.root / SPENDER, spender)
    except OSError as error:
        raise UsageError(
            f"cannot write to --out {folder.root}: {error.strerror or error}"
        ) from error
    return run, command


def is_lacking(folder: RunFolder) -> bool:
    """Whether the account of the run lacks what earlier commands of it may have spent."""
    return bool(_held(folder).get("lacks"))


def damaged(journal: Path, error: Exception) -> UsageError:
    """That no account can be kept in `journal`."""
    words = " ".join(str(error).split())
    return UsageError(
        f"the account of what is spent cannot be kept in {journal}: {words}. Put a copy of it in "
        "its place, or move the file away and go on without a cap; for a cap "
        f"{BEGIN_ANEW}"
    )


def _held(folder: RunFolder) -> dict[str, Any]:
    try:
        held = orjson.loads((folder.root / SPENDER).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return held if isinstance(held, dict) else {}


def _has_spent(journal: Path, run: str) -> bool:
    """Whether the account at `journal` says so, or cannot say that it does not."""
    if not journal.is_file():
        return True
    try:
        with SpendJournal(journal) as account:
            return any(True for _ in account.rows(run))
    except (sqlite3.Error, OSError):
        return True
