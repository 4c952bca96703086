"""The board on which the replicas of a cluster tell each other what they have measured.

Invariant: replicas of one application that count the same things share a board, and no others do.
Nothing that was measured lies here alone: a board that is gone is made anew by the next replica
that posts, and is whole when each has posted once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError

from serve.metrics.board import Board
from serve.metrics.families import VERSION
from serve.metrics.numbers import Snapshot

NAMESPACE = "fupan"


class BoardActor:
    """Hosts one `Board`. It ends with the replica that made it, as an actor does that is not
    detached."""

    def __init__(self) -> None:
        self._board = Board()

    def exchange(self, replica: str, snapshot: Snapshot) -> dict[str, Snapshot]:
        """See `Shared.exchange`."""
        return self._board.exchange(replica, snapshot)


class RayBoard:
    """`Shared` through the one actor of the cluster."""

    def __init__(self, application: str) -> None:
        """Asks nothing yet. `application`: whose replicas share it."""
        self._name = board_name(application)
        self._actor: Any = None

    async def exchange(self, replica: str, snapshot: Snapshot) -> Mapping[str, Snapshot]:
        """See `Shared.exchange`. Raises RayError where no board can be had."""
        try:
            return await self._ask(replica, snapshot)
        except RayActorError:
            # It ended with its replica.
            self._actor = None
            return await self._ask(replica, snapshot)

    async def _ask(self, replica: str, snapshot: Snapshot) -> Mapping[str, Snapshot]:
        if self._actor is None:
            # Ray waits for the name, a second at first.
            self._actor = await asyncio.to_thread(_get_or_create, self._name)
        found: Mapping[str, Snapshot] = await self._actor.exchange.remote(replica, snapshot)
        return found


def board_name(application: str, version: str = VERSION) -> str:
    """The name of the board of an application's replicas. `version`: of what they count."""
    return f"fupan-metrics-{application}-{version}"


def _get_or_create(name: str) -> Any:
    return (
        ray.remote(BoardActor)
        .options(name=name, namespace=NAMESPACE, get_if_exists=True, num_cpus=0)
        .remote()
    )
