"""One limiter for a whole Ray cluster: a named actor per URL and key, and the client to it.

Invariant: the key never travels: each client reads it in its own process, and only a hash of it and
the URL names the actor. A client survives the loss of the actor; the actor survives the loss of a
client, and ends itself when nobody has waited or held a lease for ten minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import os
import time
import uuid
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayActorError

from serve.ask.contract import Class
from serve.ask.errors import BreakerOpen
from serve.ask.holders import BEAT_SECONDS, Holders
from serve.ask.limiter_host import LimiterHost, TicketLost, breaker_open
from serve.ask.permit import CALL_SECONDS, Lease, LimiterStats, Limits, Outcome, Settled
from serve.ask.ratelimit_headers import PREFIX

PROTOCOL = 1
"""Part of the actor's name: raised when clients and actors of two versions cannot talk."""
NAMESPACE = "fupan"
MAX_CALLS = 10_000
"""Calls the actor takes at once. Every waiting ticket is one, and a settle must never queue behind
them; waiting calls cost memory only."""
WATCH_SECONDS = 1.0
LOST_SECONDS = 60.0
"""How long a client looks for a lost actor before it gives up; a restart takes a second or two."""
SETTLE_SECONDS = 2.0
"""The same for giving a lease back, which a paid answer must not wait for."""
LOST_PAUSE_SECONDS = 0.2
IDLE_SECONDS = 600.0
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Caller:
    """A client as it presents itself with every ticket.

    `sent_requests`, `sent_tokens`: granted to it in the last minute. An actor that does not know
    the caller has replaced one that is lost, and counts them as sent.
    """

    name: str
    limits: Limits
    sent_requests: int
    sent_tokens: int


class LimiterActor:
    """The actor: a host that knows its callers. It ends itself `idle_seconds` after its last use.

    A ticket is answered with None when its caller was taken for dead: it may ask again.
    """

    def __init__(self, limits: Limits, idle_seconds: float = IDLE_SECONDS) -> None:
        self._host = LimiterHost(limits)
        self._holders = Holders()
        self._idle_seconds = idle_seconds
        self._used_at = time.monotonic()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def acquire(
        self, caller: Caller, ticket_id: str, cls: Class, tokens: int, call_seconds: float
    ) -> Lease | float | None:
        """A lease; or, the breaker being open, the seconds until another try is worth it."""
        self._join(caller)
        self._holders.begin(caller.name, ticket_id)
        try:
            return await self._host.acquire(ticket_id, cls, tokens, call_seconds)
        except BreakerOpen as error:
            self._holders.end(caller.name, ticket_id)
            return error.retry_after
        except TicketLost:
            return None

    async def retry_token(self, caller: Caller, ticket_id: str) -> bool | None:
        """True once a token of the retry budget is taken."""
        self._join(caller)
        self._holders.begin(caller.name, ticket_id)
        try:
            await self._host.retry_token(ticket_id)
        except TicketLost:
            return None
        self._holders.end(caller.name, ticket_id)
        return True

    async def settle(self, name: str, lease_id: str, outcome: Outcome) -> Settled:
        """See `Permits.settle`."""
        self._holders.end(name, lease_id)
        return self._host.settle(lease_id, outcome)

    async def withdraw(self, name: str, ticket_id: str) -> None:
        """See `LimiterHost.withdraw`."""
        self._holders.end(name, ticket_id)
        self._host.withdraw(ticket_id)

    async def beat(self, name: str) -> None:
        """The caller of that name is alive."""
        self._holders.beat(name, time.monotonic())

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        return self._host.stats()

    def _join(self, caller: Caller) -> None:
        if self._holders.join(caller.name, caller.limits, time.monotonic()):
            self._host.sent_before(caller.sent_requests, caller.sent_tokens)
        self._fit_limits()

    def _fit_limits(self) -> None:
        if limits := self._holders.limits():
            self._host.set_limits(limits)

    async def _watch(self) -> None:
        """Give up what dead callers left; end when unused."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = time.monotonic()
            if given_up := self._holders.give_up(now):
                self._host.expire(given_up)
            self._fit_limits()
            if self._holders.busy:
                self._used_at = now
            elif now - self._used_at >= self._idle_seconds:
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


class RayPermits:
    """`Permits` shared by all who use the same URL and key in this cluster.

    Of the limits that its users name, the strictest hold. Belongs to the loop it is used on. Raises
    Ray's error only when no actor can be had for LOST_SECONDS.
    """

    def __init__(self, url: str, key_env: str | None, limits: Limits) -> None:
        """For the provider at `url`, with the key that this process's environment has under
        `key_env`. Starts the actor where there is none; blocks until it has a name."""
        self._actor_name = _actor_name(url, os.environ.get(key_env, "") if key_env else "")
        self._limits = limits
        self._name = uuid.uuid4().hex
        self._actor = _get_or_create(self._actor_name, limits)
        self._ids = itertools.count()
        self._open: set[str] = set()
        self._beating: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[Settled]] = set()
        self._sent: deque[tuple[float, int]] = deque()
        self._sent_tokens = 0

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """See `Permits.acquire`."""
        answer = await self._answer_to_ticket("acquire", cls, tokens, call_seconds)
        if isinstance(answer, Lease):
            self._sent.append((time.monotonic(), tokens))
            self._sent_tokens += tokens
            return answer
        raise breaker_open(answer)

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        """See `Permits.settle`. Never fails: the lease of a lost actor is lost with it."""
        self._open.discard(lease.id)
        limit_headers = {k: v for k, v in outcome.headers.items() if k.startswith(PREFIX)}
        outcome = replace(outcome, headers=limit_headers)
        try:
            settled: Settled = await self._call(
                "settle", self._name, lease.id, outcome, patience=SETTLE_SECONDS
            )
        except RayActorError:
            return Settled(breaker_open=False)
        return settled

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        """See `Permits.settle_soon`."""
        task = asyncio.get_running_loop().create_task(self.settle(lease, outcome))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def retry_token(self) -> None:
        """See `Permits.retry_token`."""
        await self._answer_to_ticket("retry_token")

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        stats: LimiterStats = await self._call("stats")
        return stats

    async def _answer_to_ticket(self, method: str, *args: object) -> Any:
        """What the actor answers to a ticket; a fresh ticket replaces one that is lost with it.

        A ticket stays open, and the caller keeps beating, until it is answered with something that
        is no lease, or its lease is settled.
        """
        lost_since: float | None = None
        while True:
            ticket_id = f"{self._name}-{next(self._ids)}"
            self._keep_beating(ticket_id)
            try:
                call = getattr(self._actor, method)
                answer = await call.remote(self._caller(), ticket_id, *args)
            except BaseException as error:
                self._open.discard(ticket_id)
                self._actor.withdraw.remote(self._name, ticket_id)
                if not isinstance(error, RayActorError):
                    raise
                lost_since = await self._find_actor(lost_since, LOST_SECONDS, error)
                continue
            if not isinstance(answer, Lease):
                self._open.discard(ticket_id)
            if answer is not None:
                return answer

    async def _call(self, method: str, *args: object, patience: float = LOST_SECONDS) -> Any:
        """What the actor, or the one that replaces it, answers to a call that may be repeated."""
        lost_since: float | None = None
        while True:
            try:
                return await getattr(self._actor, method).remote(*args)
            except RayActorError as error:
                lost_since = await self._find_actor(lost_since, patience, error)

    async def _find_actor(
        self, lost_since: float | None, patience: float, error: RayActorError
    ) -> float:
        """Look for the actor again; when it was first missed. Raises `error` when that was more
        than `patience` seconds ago."""
        now = time.monotonic()
        if lost_since is not None and now - lost_since >= patience:
            raise error
        await asyncio.sleep(LOST_PAUSE_SECONDS)
        self._actor = await asyncio.to_thread(_get_or_create, self._actor_name, self._limits)
        return now if lost_since is None else lost_since

    def _caller(self) -> Caller:
        while self._sent and self._sent[0][0] < time.monotonic() - MINUTE:
            self._sent_tokens -= self._sent.popleft()[1]
        return Caller(self._name, self._limits, len(self._sent), self._sent_tokens)

    def _keep_beating(self, ticket_id: str) -> None:
        self._open.add(ticket_id)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while self._open:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(RayActorError):  # the next ticket or settle finds the actor
                await self._actor.beat.remote(self._name)


def _actor_name(url: str, key: str) -> str:
    digest = hashlib.sha256(f"{url}\0{key.strip()}".encode()).hexdigest()
    return f"limiter-v{PROTOCOL}-{digest[:24]}"


def _get_or_create(name: str, limits: Limits) -> Any:
    """A handle to the actor of that name; blocks."""
    actor = ray.remote(LimiterActor).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_concurrency=MAX_CALLS,
    )
    return actor.remote(limits)
