"""What waits to be asked, and when it is worth a permit.

Invariant: every item is in the window, in one batch, or taken; a pack is formed when it is taken,
not when it became possible. A pack that is not full is worth a permit only once no record has
arrived for LINGER_SECONDS: then the input is at its end, or waits for these very answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

from job.analyse.contract import Together
from job.analyse.requests import lane_of, wire_tokens
from job.pack.packing import Fit, Item, Window
from job.ration.window import RationedWindow
from job.records import Lane

LINGER_SECONDS = 1.5
"""Longer than a reader takes for a block, on a busy machine too."""


class Waiting:
    """The window of records and the batches that the contract asks for again. `rationed`: the
    most important records go first."""

    def __init__(self, fit: Fit, linger: float = LINGER_SECONDS, rationed: bool = False) -> None:
        self._linger = linger
        self._fit = fit
        self._window = RationedWindow(fit) if rationed else Window(fit)
        self._batches: deque[Together] = deque()
        self._arrived = 0.0
        self._wake: dict[Lane, asyncio.Event] = {"fast": asyncio.Event(), "slow": asyncio.Event()}
        self._wake_again = asyncio.Event()

    def push(self, item: Item, last: bool = False) -> None:
        """Let `item` wait for a pack of its kind, lane and tier."""
        self._window.push(item, last)
        self._arrived = time.monotonic()
        self._wake[item.record.lane].set()

    def push_batch(self, batch: Together, first: bool = False) -> None:
        """Let `batch` wait as it is. `first`: before the others, as the halves of a refused pack,
        so that the record to blame is found before the next pack is halved."""
        if first:
            self._batches.appendleft(batch)
        else:
            self._batches.append(batch)
        self._wake_again.set()

    async def pack_ready(self, lane: Lane) -> int:
        """Wait until `lane` has a pack worth a permit; the tokens it will take, about."""
        while True:
            group, full = self._window.choose(lane)
            rested = time.monotonic() - self._arrived
            if group is not None and (full or rested >= self._linger):
                wire, count = self._window.tokens(group), self._window.count(group)
                return self._fit.estimate(group[0], lane, wire, count)
            self._wake[lane].clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if group is None else self._linger - rested):
                    await self._wake[lane].wait()

    async def batch_ready(self) -> int:
        """Wait until there is a batch; the tokens it will take, about."""
        while not self._batches:
            self._wake_again.clear()
            await self._wake_again.wait()
        items = self._batches[0].items
        kind, lane = items[0].record.kind, lane_of(items)
        return self._fit.request_tokens(kind, lane, wire_tokens(items), len(items))

    def take_pack(self, lane: Lane) -> Together:
        """The pack to send now, of those that wait; empty if none does any more."""
        group, _ = self._window.choose(lane)
        taken = tuple(self._window.take(group)) if group is not None else ()
        # What the other lane may not take before this pack it may take now.
        for wake in self._wake.values():
            wake.set()
        return Together(taken)

    def take_batch(self) -> Together:
        """The batch to send now; empty if there is none any more."""
        return self._batches.popleft() if self._batches else Together(())

    def drain(self) -> list[Item]:
        """Everything that waits, taken out."""
        items = self._window.drain()
        items += [item for batch in self._batches for item in batch.items]
        self._batches.clear()
        return items

    def counts(self) -> tuple[int, int, int]:
        """Items that wait in the fast lane, in the slow lane, and to be asked again."""
        again = sum(len(batch.items) for batch in self._batches)
        return self._window.waiting("fast"), self._window.waiting("slow"), again
