"""One meter for all replicas of a cluster: a named actor, and the client to it.

A replica holds a slice of what a busy key may use and lets requests go by it (see `share`); four
letters a second tell what was used and turn the slice over. A request that finds no slice asks with
a letter of its own, together with all that come while one is under way. The actor writes down in
one transaction what comes in one call.

Invariant: the actor lives on the head of the cluster, where its journal is, and one that replaces
it goes on where it ended: a call that its death interrupts is repeated under the same tickets and
counts once. Where nobody can count, no limited key may ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_host import uncounted
from serve.gateway.share import Share, Waiter
from serve.gateway.slice_host import SliceHost
from serve.gateway.slices import Asked, Renewal, Renewed

PROTOCOL = 2
"""Part of the actor's name: raised when clients and actors of two versions cannot talk."""
NAMESPACE = "fupan"
HEAD = {"node:__internal_head__": 0.001}
"""What Ray gives to the head of a cluster alone."""
MOST_AT_ONCE = 200
"""Letters, of a key each, in one call: about ten milliseconds of the actor's time."""
TOGETHER_SECONDS = 0.02
"""What is due so soon goes along with a letter that is sent anyway."""
LOST_SECONDS = 10.0
"""How long a lost actor is looked for before clients are told; a restart takes a second or two."""
LOST_PAUSE_SECONDS = 0.2
IDLE_SECONDS = 600.0


class MeterActor:
    """Hosts one `SliceHost`. It ends itself `idle_seconds` after its last use, or a multiple of
    them where it still knows what another would not."""

    def __init__(self, state: str, idle_seconds: float = IDLE_SECONDS) -> None:
        self._host = SliceHost(Path(state), time.monotonic, time.time)
        self._idle_seconds = idle_seconds
        self._used_at = time.monotonic()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def take(self, letters: Sequence[Renewal]) -> list[Renewed | GatewayError]:
        """Hear `letters` in their order, and write them down; an error: it was not heard."""
        self._used_at = time.monotonic()
        told: list[Renewed | GatewayError] = []
        for letter in letters:
            try:
                told.append(self._host.renew(letter))
            except GatewayError as error:
                told.append(error)
        if self._host.write() is not None:
            told = [
                self._host.told(letter) or one for letter, one in zip(letters, told, strict=True)
            ]
        return told

    async def _watch(self) -> None:
        """End when unused."""
        while True:
            left = self._used_at + self._idle_seconds - time.monotonic()
            if left <= 0 and self._host.at_rest():
                self._host.close()
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)
            await asyncio.sleep(left if left > 0 else self._idle_seconds)


class RayMeter:
    """`Meter` shared by all who keep their accounts in the same folder of the cluster's head.
    Belongs to the loop it is used on."""

    def __init__(self, state: Path, idle_seconds: float = IDLE_SECONDS) -> None:
        """Starts the actor where there is none; blocks until it has a name."""
        self._state = str(state.absolute())
        self._idle_seconds = idle_seconds
        self._actor = self._get_or_create()
        self._name = uuid.uuid4().hex
        self._shares: dict[str, tuple[KeyRecord, Share]] = {}
        self._closed: list[tuple[KeyRecord, Share]] = []
        self._made = itertools.count()
        self._sending: asyncio.Task[None] | None = None
        self._looking: asyncio.Future[Any] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._later_at = math.inf

    async def begin(self, key: KeyRecord, ticket: str, tokens: int, worst: Decimal | None) -> None:
        """See `Meter.begin`."""
        if not key.limited:
            return
        asked = Asked(tokens, worst)
        share = self._share(key)
        if share.begin(key, ticket, asked, time.monotonic()):
            return
        future: asyncio.Future[GatewayError | None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(ticket, tokens, worst, lambda refused: _resolve(future, refused))
        share.wait(waiter)
        self._start()
        try:
            refused = await future
        except asyncio.CancelledError:
            for _, each in self._of(key.name):
                each.leave(waiter)
                # It may have been let go in the moment in which it was given up.
                each.withdraw(ticket, time.monotonic())
                self._wait_until(each.due_at())
            raise
        if refused is not None:
            raise refused

    async def end(
        self, key: KeyRecord, ticket: str, tokens: int | None, cost: Decimal | None
    ) -> None:
        """See `Meter.end`. Nobody waits until the actor knows it: one that never does counts the
        request in full."""
        if not key.limited:
            return
        for _, share in self._of(key.name):
            if share.end(ticket, tokens, cost, time.monotonic()):
                self._wait_until(share.due_at())
                return

    async def aclose(self) -> None:
        """See `Meter.aclose`. The actor goes on for the other replicas."""
        heard = True
        while heard and any(share.unsaid for _, share in self._all()):
            if self._sending is not None:
                await asyncio.wait([self._sending])
            heard = await self._send([one for one in self._all() if one[1].unsaid], ending=True)
        self._wait_until(math.inf)

    def _share(self, key: KeyRecord) -> Share:
        """That of the key, under its present limits."""
        known = self._shares.get(key.name)
        if known is not None and known[0] is key:
            return known[1]
        if known is not None and _money(known[0]) == _money(key):
            share = known[1]
        else:
            share = Share(f"{self._name}-{next(self._made)}")
            if known is not None and not known[1].over:
                # Its letters may not be heard, as where no money can be counted.
                known[1].closed = True
                self._closed.append(known)
        self._shares[key.name] = key, share
        return share

    def _of(self, name: str) -> Iterator[tuple[KeyRecord, Share]]:
        """The shares of the key of that name."""
        if (present := self._shares.get(name)) is not None:
            yield present
        yield from (one for one in self._closed if one[0].name == name)

    def _all(self) -> list[tuple[KeyRecord, Share]]:
        return [*self._shares.values(), *self._closed]

    def _start(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    def _wait_until(self, at: float) -> None:
        """Send at that time, or sooner where there is a reason; infinity: not at all."""
        if self._later is not None:
            if at < math.inf and self._later_at <= at:
                return
            self._later.cancel()
            self._later = None
        if at < math.inf:
            delay = max(0.0, at - time.monotonic())
            self._later = asyncio.get_running_loop().call_later(delay, self._on_time)
            self._later_at = at

    def _on_time(self) -> None:
        self._later = None
        self._start()

    async def _send_all(self) -> None:
        """Send for as long as anything is due. Whatever ends it, nobody goes on waiting."""
        try:
            while due := self._due():
                await self._send(due)
        except BaseException as error:
            failed = uncounted(repr(error))
            for _, share in self._all():
                share.unheard(failed, time.monotonic())
            raise
        self._wait_until(min((share.due_at() for _, share in self._all()), default=math.inf))

    def _due(self) -> list[tuple[KeyRecord, Share]]:
        soon = time.monotonic() + TOGETHER_SECONDS
        return [one for one in self._all() if one[1].due_at() <= soon][:MOST_AT_ONCE]

    async def _send(self, shares: list[tuple[KeyRecord, Share]], ending: bool = False) -> bool:
        """A letter of each; whether all were heard."""
        now = time.monotonic()
        letters = [share.letter(key, now, ending) for key, share in shares]
        told = await self._told(letters)
        now = time.monotonic()
        for (key, share), letter, one in zip(shares, letters, told, strict=True):
            if isinstance(one, GatewayError):
                share.unheard(one, now)
            else:
                self._hear(key, share, letter, one)
        return not any(isinstance(one, GatewayError) for one in told)

    def _hear(self, key: KeyRecord, share: Share, letter: Renewal, told: Renewed) -> None:
        moved = share.hear(key, letter, told, time.monotonic())
        present = self._shares.get(key.name)
        if (share.closed or share.over) and present is not None and present[1] is share:
            del self._shares[key.name]
            if share.closed:
                self._closed.append((key, share))
        self._closed = [one for one in self._closed if not one[1].over]
        for waiter in moved:
            present = self._shares.get(key.name)
            share = self._share(key) if present is None else present[1]
            share.wait(waiter)

    async def _told(self, letters: list[Renewal]) -> list[Renewed | GatewayError]:
        """What the actor, or the one that replaces it, answers. Never fails."""
        lost: Exception | None = None
        try:
            async with asyncio.timeout(LOST_SECONDS):
                while True:
                    try:
                        told: list[Renewed | GatewayError] = await self._actor.take.remote(letters)
                        return told
                    except RayActorError as error:
                        lost = error
                    await asyncio.sleep(LOST_PAUSE_SECONDS)
                    self._actor = await self._found()
        except TimeoutError:
            return [uncounted(lost or "the meter does not answer")] * len(letters)
        except Exception as error:  # whatever it is, those who wait are to be told
            return [uncounted(lost or repr(error))] * len(letters)

    async def _found(self) -> Any:
        """Look for the actor in a thread: one at a time, since a look may outlast who waits."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._get_or_create))
        return await asyncio.shield(self._looking)

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


def _money(key: KeyRecord) -> str | None:
    """In which currency the key's money is counted; None: it is not."""
    return None if key.max_spend is None else key.currency


def _resolve(future: asyncio.Future[GatewayError | None], refused: GatewayError | None) -> bool:
    if future.done():
        return False
    future.set_result(refused)
    return True
