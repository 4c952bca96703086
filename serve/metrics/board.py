"""The latest numbers of all replicas, so that each of them can tell those of all.

Invariant: a replica that ended is forgotten soon, and its series end with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from serve.metrics.numbers import Snapshot

POST_SECONDS = 5.0
"""Between two postings of a replica: a third of Prometheus's usual interval."""
STALE_SECONDS = 4 * POST_SECONDS
"""After which one that posts nothing is gone."""

EXCHANGE_SECONDS = 2.0
"""For one posting: who scrapes a replica does not wait for a board that hangs."""


class Shared(Protocol):
    """The board of a cluster, awaited."""

    async def exchange(self, replica: str, snapshot: Snapshot) -> Mapping[str, Snapshot]:
        """Post what `replica` has, and get the latest of all, by replica."""
        ...


class Board:
    """What was posted last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._posted: dict[str, tuple[float, Snapshot]] = {}

    def exchange(self, replica: str, snapshot: Snapshot) -> dict[str, Snapshot]:
        """See `Shared.exchange`."""
        now = self._clock()
        self._posted[replica] = now, snapshot
        gone = [name for name, (at, _) in self._posted.items() if now - at >= STALE_SECONDS]
        for name in gone:
            del self._posted[name]
        return {name: each for name, (_, each) in self._posted.items()}
