"""The limiter of a cluster, as an actor: it hosts one for clients that write letters.

A client's letter holds all that it has to say: tickets it asks for, leases that have ended, tickets
it does not want any more. The reply comes at once and holds what is decided; what is decided later
is fetched by `collect`. So a client has two calls to the actor under way, however many requests.

Invariant: an answer that is lost on its way is given again when the client asks again; the actor
survives the loss of a client, and ends itself when nobody has waited or held a lease for ten
minutes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from serve.ask.errors import BreakerOpen
from serve.ask.holders import Holders
from serve.ask.limiter_host import LimiterHost, TicketLost
from serve.ask.limiter_letters import Caller, Decided, OutcomeRow, Reply, TicketRow
from serve.ask.permit import Lease, LimiterStats, Limits, Outcome

PROTOCOL = 2
"""Part of the actor's name: raised when clients and actors of two versions cannot talk."""
NAMESPACE = "fupan"
MAX_CALLS = 10_000
"""Calls the actor takes at once. Every client's `collect` is one, and every wait for a retry token,
and a letter must never queue behind them; waiting calls cost memory only."""
WATCH_SECONDS = 1.0
IDLE_SECONDS = 600.0
COLLECT_SECONDS = 20.0
"""How long `collect` waits for something to be decided: so long a dead client keeps its call."""


@dataclass(slots=True)
class _Box:
    """What is decided and not fetched yet."""

    decided: dict[str, Decided] = field(default_factory=dict)
    filled: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> dict[str, Decided]:
        taken, self.decided = self.decided, {}
        self.filled.clear()
        return taken


class LimiterActor:
    """The actor: a host that knows its callers. It ends itself `idle_seconds` after its last
    use."""

    def __init__(self, limits: Limits, idle_seconds: float = IDLE_SECONDS) -> None:
        self._host = LimiterHost(limits)
        self._holders = Holders()
        self._boxes: dict[str, _Box] = {}
        self._server = uuid.uuid4().hex
        self._idle_seconds = idle_seconds
        self._used_at = time.monotonic()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def exchange(
        self,
        caller: Caller,
        tickets: Sequence[TicketRow],
        outcomes: Sequence[OutcomeRow],
        unwanted: Sequence[str],
    ) -> Reply:
        """A letter and the reply to it; nothing is waited for."""
        self._join(caller)
        name = caller.name
        breaker_open = []
        for lease_id, kind, tokens, retry_after, headers, status in outcomes:
            self._holders.end(name, lease_id)
            outcome = Outcome(kind, tokens, retry_after, headers, status)
            breaker_open.append(self._host.release(lease_id, outcome).breaker_open)
        for row in tickets:
            self._holders.begin(name, row.id)
            self._host.enqueue(*row, partial(self._decide, name, row.id))
        for ticket_id in unwanted:
            self._holders.end(name, ticket_id)
            self._host.leave(ticket_id)
        self._host.step()
        return Reply(self._server, self._box(name).take(), breaker_open)

    async def collect(self, name: str) -> Reply:
        """What was decided since the last reply to that caller, as soon as there is something; at
        once where nobody is known by that name."""
        decided: dict[str, Decided] = {}
        if self._holders.knows(name):
            box = self._box(name)
            try:
                async with asyncio.timeout(COLLECT_SECONDS):
                    # A letter's reply may have taken what filled it.
                    while not box.decided:
                        await box.filled.wait()
            except TimeoutError:
                pass
            decided = box.take()
        return Reply(self._server, decided, [])

    async def retry_token(self, caller: Caller, ticket_id: str) -> bool | None:
        """True once a token of the retry budget is taken; None: see `Decided`."""
        self._join(caller)
        self._holders.begin(caller.name, ticket_id)
        try:
            await self._host.retry_token(ticket_id)
        except TicketLost:
            return None
        self._holders.end(caller.name, ticket_id)
        return True

    async def withdraw(self, name: str, ticket_id: str) -> None:
        """A ticket for a token of the retry budget is not wanted any more."""
        self._holders.end(name, ticket_id)
        self._host.withdraw(ticket_id)

    async def beat(self, name: str) -> None:
        """The caller of that name is alive."""
        self._holders.beat(name, time.monotonic())

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        return self._host.stats()

    def _decide(self, name: str, ticket_id: str, given: Lease | Exception) -> None:
        decided: Decided = None
        if isinstance(given, Lease):
            decided = given.granted_at, given.expires_at
        else:
            self._holders.end(name, ticket_id)
            if isinstance(given, BreakerOpen):
                decided = given.retry_after
        box = self._box(name)
        box.decided[ticket_id] = decided
        box.filled.set()

    def _box(self, name: str) -> _Box:
        box = self._boxes.get(name)
        if box is None:
            box = self._boxes[name] = _Box()
        return box

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
            for name in [name for name in self._boxes if not self._holders.knows(name)]:
                del self._boxes[name]
            self._fit_limits()
            if self._holders.busy:
                self._used_at = now
            elif now - self._used_at >= self._idle_seconds:
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def server_name(url: str, key: str) -> str:
    """Of the actor for that URL and key: of neither can it be told what it was."""
    digest = hashlib.sha256(f"{url}\0{key.strip()}".encode()).hexdigest()
    return f"limiter-v{PROTOCOL}-{digest[:24]}"


def find_server(name: str, limits: Limits) -> Any:
    """A handle to the actor of that name, which is started where there is none; blocks."""
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
