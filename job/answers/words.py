"""What is said of the store of answers when something is the matter with its file. Pure.

Invariant: each sentence says what to do, or that nothing need be done.
"""

from __future__ import annotations

from pathlib import Path

from job.errors import JobError, UsageError
from serve.ask.answers_file import ForeignFile, NewerStore, StoreError
from serve.ask.answers_repair import Damage


def answers_error(path: Path, error: StoreError) -> JobError:
    """What is the matter with the file at `path`, and what to do."""
    if isinstance(error, ForeignFile):
        return UsageError(
            f"--answers {path} is no store of answers: {error}. It was left as it is: name another "
            "file (if it was a store once, move it away)"
        )
    if isinstance(error, NewerStore):
        return UsageError(
            f"--answers {path} was written by a newer version of fupan: {error}. It was left as it "
            "is: use that version, or name another file"
        )
    return JobError(
        f"the store of answers {path} is damaged: {error}. The next `fupan run` sets it aside, "
        "takes over what can still be read and goes on with a new one"
    )


def damage_words(damage: Damage) -> str:
    """What happened to the store, in a sentence."""
    taken = "all of it" if damage.whole else "what could be read of it"
    return (
        f"the store of answers was damaged ({damage.why}): it was set aside as {damage.copy}, and "
        f"{taken}, {damage.salvaged:,} answers, is in the new one beside it"
    )
