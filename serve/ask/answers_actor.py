"""The one actor of a run through which everybody reads and writes the store of answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from serve.ask.answers_at import AnswersAt, open_at
from serve.ask.answers_file import StoreError

RETRIES = 3
"""Of a call that an actor's death interrupted: getting and putting may be repeated."""
_FAILED = (sqlite3.Error, StoreError, OSError)


class AnswersActor:
    """Hosts an open store on the node it was started on (the driver's: a file is there)."""

    def __init__(self, at: AnswersAt) -> None:
        self._answers = open_at(at)

    def get_many(self, keys: Sequence[bytes], since: float | None = None) -> dict[bytes, bytes]:
        """See `Answers.get_many`."""
        return self._answers.get_many(keys, since)

    def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        """See `Answers.put_many`; returns when the answers are safe."""
        self._answers.put_many(items, replace)

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        """See `Answers.learned`; None also where the store fails: no run ends for want of it."""
        with suppress(*_FAILED):
            return self._answers.learned(name, since)
        return None

    def keep_learned(self, name: str, value: bytes) -> None:
        """See `Answers.keep_learned`; it is not kept where the disk is full or the store locked."""
        with suppress(*_FAILED):
            self._answers.keep_learned(name, value)


def start_answers(at: AnswersAt) -> Any:
    """The actor for the store at `at`, on the node of the caller, where a file is. It takes no CPU
    and is started again if it dies."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = ray.remote(AnswersActor).options(
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=RETRIES,
        scheduling_strategy=here,
    )
    return actor.remote(at)


class RayAnswers:
    """The store as the job's actors see it: the methods of `AnswersActor`, awaited. What the store
    raises is raised as it is there."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def get_many(
        self, keys: Sequence[bytes], since: float | None = None
    ) -> dict[bytes, bytes]:
        """See `Answers.get_many`."""
        found: dict[bytes, bytes] = await _plainly(self._actor.get_many.remote(keys, since))
        return found

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        """See `Answers.put_many`."""
        await _plainly(self._actor.put_many.remote(items, replace))

    async def learned(self, name: str, since: float | None = None) -> bytes | None:
        """See `Answers.learned`."""
        value: bytes | None = await self._actor.learned.remote(name, since)
        return value

    async def keep_learned(self, name: str, value: bytes) -> None:
        """See `Answers.keep_learned`."""
        await self._actor.keep_learned.remote(name, value)


async def _plainly(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except RayTaskError as error:
        # Ray's own words are the trace of the actor.
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
