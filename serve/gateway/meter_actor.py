"""One meter for all replicas of a cluster: a named actor, and the client to it.

While one call to the actor is under way, what begins meanwhile collects and goes together in the
next one, and what has ended goes along with it, or alone a moment later; the actor writes each of
these down in one transaction.

Invariant: the actor lives on the head of the cluster, where its journal is, and one that replaces
it goes on where it ended: a call that its death interrupts is repeated under the same tickets and
counts once. Where nobody can count, no limited key may ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from serve.gateway.errors import GatewayError, Overloaded
from serve.gateway.keys import KeyRecord
from serve.gateway.meter import LAZY_SECONDS
from serve.gateway.meter_host import MeterHost, uncounted

PROTOCOL = 1
"""Part of the actor's name: raised when clients and actors of two versions cannot talk."""
NAMESPACE = "fupan"
HEAD = {"node:__internal_head__": 0.001}
"""What Ray gives to the head of a cluster alone."""
MOST_AT_ONCE = 1_000
"""Begun and ended requests in one call: about ten milliseconds of the actor's time."""
LOST_SECONDS = 10.0
"""How long a lost actor is looked for before clients are told; a restart takes a second or two."""
LOST_PAUSE_SECONDS = 0.2
IDLE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Begin:
    """See `Meter.begin`."""

    key: KeyRecord
    ticket: str
    tokens: int
    worst: Decimal | None


@dataclass(frozen=True, slots=True)
class End:
    """See `Meter.end`. `unsent`: the request never went, and counts for nothing."""

    ticket: str
    tokens: int | None = None
    cost: Decimal | None = None
    unsent: bool = False


class MeterActor:
    """Hosts one `MeterHost`. It ends itself `idle_seconds` after its last use."""

    def __init__(self, state: str, idle_seconds: float = IDLE_SECONDS) -> None:
        self._host = MeterHost(Path(state), time.monotonic, time.time)
        self._idle_seconds = idle_seconds
        self._used_at = time.monotonic()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def take(self, calls: Sequence[Begin | End]) -> list[GatewayError | None]:
        """Count `calls` in their order, and write them down; why each may not be."""
        self._used_at = time.monotonic()
        told: list[GatewayError | None] = []
        to_be_written: list[int] = []
        for place, call in enumerate(calls):
            refused: GatewayError | None = None
            if isinstance(call, End):
                self._end(call)
            else:
                try:
                    if self._host.begin(call.key, call.ticket, call.tokens, call.worst):
                        to_be_written.append(place)
                except GatewayError as error:
                    refused = error
            told.append(refused)
        if (failed := self._host.write()) is not None:
            for place in to_be_written:
                told[place] = failed
        return told

    def _end(self, call: End) -> None:
        if call.unsent:
            self._host.withdraw(call.ticket)
        else:
            self._host.end(call.ticket, call.tokens, call.cost)

    async def _watch(self) -> None:
        """End when unused."""
        while True:
            left = self._used_at + self._idle_seconds - time.monotonic()
            if left <= 0:
                self._host.close()
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)
            await asyncio.sleep(max(left, LOST_PAUSE_SECONDS))


class RayMeter:
    """`Meter` shared by all who keep their accounts in the same folder of the cluster's head.
    Belongs to the loop it is used on."""

    def __init__(self, state: Path, idle_seconds: float = IDLE_SECONDS) -> None:
        """Starts the actor where there is none; blocks until it has a name."""
        self._state = str(state.absolute())
        self._idle_seconds = idle_seconds
        self._actor = self._get_or_create()
        self._queue: list[tuple[Begin | End, asyncio.Future[GatewayError | None] | None]] = []
        self._sending: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def begin(self, key: KeyRecord, ticket: str, tokens: int, worst: Decimal | None) -> None:
        """See `Meter.begin`."""
        if not key.limited:
            return
        waiter: asyncio.Future[GatewayError | None] = asyncio.get_running_loop().create_future()
        self._send(Begin(key, ticket, tokens, worst), waiter)
        try:
            refused = await waiter
        except asyncio.CancelledError:
            self._send(End(ticket, unsent=True))
            raise
        if refused is not None:
            if isinstance(refused, Overloaded):
                # One who did not answer in time may yet let it go.
                self._send(End(ticket, unsent=True))
            raise refused

    async def end(
        self, key: KeyRecord, ticket: str, tokens: int | None, cost: Decimal | None
    ) -> None:
        """See `Meter.end`. Nobody waits until the actor knows it: one that never does counts the
        request in full."""
        if key.limited:
            self._send(End(ticket, tokens, cost))

    async def aclose(self) -> None:
        """See `Meter.aclose`. The actor goes on for the other replicas."""
        while self._queue:
            self._start()
            if self._sending is not None:
                await self._sending
        if self._sending is not None:
            await self._sending

    def _send(
        self, call: Begin | End, waiter: asyncio.Future[GatewayError | None] | None = None
    ) -> None:
        self._queue.append((call, waiter))
        if waiter is not None:
            self._start()
        else:
            self._start_later()

    def _start(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    def _start_later(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(LAZY_SECONDS, self._start)

    async def _send_all(self) -> None:
        waited_for = True
        while self._queue and waited_for:
            batch, self._queue = self._queue[:MOST_AT_ONCE], self._queue[MOST_AT_ONCE:]
            told = await self._told([call for call, _ in batch])
            for (_, waiter), refused in zip(batch, told, strict=True):
                if waiter is not None and not waiter.done():
                    waiter.set_result(refused)
            waited_for = any(waiter is not None for _, waiter in self._queue)
        if self._queue:
            self._start_later()

    async def _told(self, calls: list[Begin | End]) -> list[GatewayError | None]:
        """What the actor, or the one that replaces it, answers."""
        until = time.monotonic() + LOST_SECONDS
        while True:
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    told: list[GatewayError | None] = await self._actor.take.remote(calls)
                return told
            except RayActorError as error:
                if time.monotonic() >= until:
                    return [uncounted(error)] * len(calls)
            except (RayError, TimeoutError) as error:
                return [uncounted(error)] * len(calls)
            await asyncio.sleep(LOST_PAUSE_SECONDS)
            self._actor = await asyncio.to_thread(self._get_or_create)

    def _get_or_create(self) -> Any:
        """A handle to the actor; blocks."""
        digest = hashlib.sha256(self._state.encode()).hexdigest()
        actor = ray.remote(MeterActor).options(
            name=f"meter-v{PROTOCOL}-{digest[:24]}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            resources=HEAD,
            max_restarts=-1,
            max_task_retries=-1,
        )
        return actor.remote(self._state, self._idle_seconds)
