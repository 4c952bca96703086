"""What is said of the store of answers when something is the matter with its file. Pure.

Invariant: each sentence says what to do, or that nothing need be done.
"""

from __future__ import annotations

from pathlib import Path

from job.errors import JobError, UsageError
from serve.ask.answers_file import ForeignFile, NewerStore, StoreError
from serve.ask.answers_redis import AnswersInRedis, StoreAway
from serve.ask.answers_repair import Damage
from serve.ask.answers_upkeep import Lasting


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


def redis_error(at: AnswersInRedis, error: StoreError) -> JobError:
    """Why the answers in a Redis cannot be had, and what to do."""
    if isinstance(error, ForeignFile):
        return UsageError(
            f"--answers {at} holds no answers of fupan's: {error}. It was left as it is: name "
            "another database of it"
        )
    if isinstance(error, NewerStore):
        return UsageError(
            f"--answers {at} was written by a newer version of fupan: {error}. It was left as it "
            "is: use that version, or name another database of it"
        )
    if isinstance(error, StoreAway):
        return UsageError(
            f"--answers {error}. Start it, or name another; without --answers a file of this "
            "machine keeps the answers"
        )
    return UsageError(f"--answers {error}")


def lasting_words(at: AnswersInRedis, lasting: Lasting) -> list[str]:
    """What a user should know of how a Redis keeps what it holds; nothing where all is well."""
    said = []
    if not lasting.appendonly:
        said.append(
            f"{at} keeps the answers in memory, and in a file only now and then (appendonly is "
            "off): what it loses when it ends is paid for again"
        )
    if lasting.policy.startswith("allkeys-"):
        said.append(
            f"{at} drops answers when its memory is full (maxmemory-policy {lasting.policy}): they "
            "are paid for again; noeviction keeps them"
        )
    return said


def damage_words(damage: Damage) -> str:
    """What happened to the store, in a sentence."""
    taken = "all of it" if damage.whole else "what could be read of it"
    return (
        f"the store of answers was damaged ({damage.why}): it was set aside as {damage.copy}, and "
        f"{taken}, {damage.salvaged:,} answers, is in the new one beside it"
    )
