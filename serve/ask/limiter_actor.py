"""One limiter for a whole Ray cluster: a named actor per URL and key, and the client to it.

While one letter to the actor is under way, what comes up meanwhile collects and goes together in
the next: a client under load sends few and large ones, an idle one sends at once.

Invariant: the key never travels: each client reads it in its own process, and only a hash of it and
the URL names the actor. A client survives the loss of the actor: what was asked is asked again.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ray.exceptions import RayActorError

from serve.ask.contract import Class
from serve.ask.limiter_letters import (
    Decided,
    Letter,
    OutcomeRow,
    Reply,
    TicketRow,
    Wait,
)
from serve.ask.limiter_link import LOST_PAUSE_SECONDS, LimiterLink, Loss
from serve.ask.limiter_server import server_name
from serve.ask.permit import CALL_SECONDS, Lease, LimiterStats, Limits, Outcome, Settled

SETTLE_SECONDS = 2.0
"""How long giving a lease back may take: a paid answer must not wait for a lost actor."""
SOON_SECONDS = 0.005
"""How long a lease that has ended waits for a ticket to go with: a letter costs a millisecond of
both processes' time, and five are nothing beside the time that a call takes."""


class RayPermits:
    """`Permits` shared by all who use the same URL and key in this cluster.

    Of the limits that its users name, the strictest hold. Belongs to the loop it is used on. Raises
    Ray's error only when no actor can be had for LOST_SECONDS.
    """

    def __init__(self, url: str, key_env: str | None, limits: Limits) -> None:
        """For the provider at `url`, with the key that this process's environment has under
        `key_env`. Starts the actor where there is none; blocks until it has a name."""
        actor_name = server_name(url, os.environ.get(key_env, "") if key_env else "")
        self._link = LimiterLink(actor_name, limits)
        self._loss = Loss(self._link)
        self._server: str | None = None
        self._letter = Letter()
        self._under_way = Letter()
        self._waits: dict[str, Wait] = {}
        self._sending: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """See `Permits.acquire`."""
        ticket = TicketRow(self._link.new_ticket(), cls, tokens, call_seconds)
        wait = Wait(ticket, asyncio.get_running_loop().create_future())
        self._waits[ticket.id] = wait
        self._letter.tickets[ticket.id] = ticket
        self._link.opened(ticket.id)
        self._send()
        try:
            lease = await wait.lease
        except asyncio.CancelledError:
            self._withdraw(ticket.id)
            raise
        self._link.count_sent(tokens)
        return lease

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        """See `Permits.settle`. Never fails: the lease of a lost actor is lost with it."""
        settled: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._settle(lease, outcome, settled)
        self._send()
        done, _ = await asyncio.wait({settled}, timeout=SETTLE_SECONDS)
        return settled.result() if done else Settled(breaker_open=False)

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        """See `Permits.settle_soon`. It goes with the next ticket where one is asked for soon."""
        self._settle(lease, outcome, None)
        if self._waits:
            self._send()
        elif self._later is None:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(SOON_SECONDS, self._send_later)

    async def retry_token(self) -> None:
        """See `Permits.retry_token`."""
        await self._link.retry_token()

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        return await self._link.stats()

    def _settle(
        self, lease: Lease, outcome: Outcome, settled: asyncio.Future[Settled] | None
    ) -> None:
        self._link.closed(lease.id)
        self._letter.outcomes[lease.id] = OutcomeRow.of(lease, outcome), settled

    def _withdraw(self, ticket_id: str) -> None:
        wait = self._waits.pop(ticket_id, None)
        self._link.closed(ticket_id)
        self._letter.tickets.pop(ticket_id, None)
        if wait is None or wait.sent:
            self._unwanted(ticket_id)

    def _unwanted(self, ticket_id: str) -> None:
        self._letter.unwanted[ticket_id] = None
        self._send()

    def _send(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._exchange())

    def _send_later(self) -> None:
        self._later = None
        if self._letter:
            self._send()

    async def _exchange(self) -> None:
        """Send letters for as long as there is something to say."""
        try:
            while self._letter:
                await self._exchange_one()
        except Exception as error:
            self._give_up(error)

    async def _exchange_one(self) -> None:
        letter, self._letter = self._letter, Letter()
        self._under_way = letter
        for ticket_id in letter.tickets:
            self._waits[ticket_id].sent = True
        actor = self._link.actor
        try:
            reply: Reply = await actor.exchange.remote(self._link.caller(), *letter.rows())
        except RayActorError as error:
            self._under_way = Letter()
            self._letter.repeat(letter, self._waits)
            await self._replace(actor, error)
            return
        letter.tell_settled(reply.breaker_open)
        self._hear(reply)
        self._under_way = Letter()
        if self._waits and (self._collecting is None or self._collecting.done()):
            self._collecting = asyncio.get_running_loop().create_task(self._collect())

    async def _collect(self) -> None:
        """Fetch what is decided later, for as long as somebody waits for it."""
        try:
            while self._waits:
                await self._collect_once()
        except Exception as error:
            self._give_up(error)

    async def _collect_once(self) -> None:
        actor = self._link.actor
        try:
            reply: Reply = await actor.collect.remote(self._link.name)
        except RayActorError as error:
            await self._replace(actor, error)
            return
        if reply.server != self._server:
            await asyncio.sleep(LOST_PAUSE_SECONDS)  # lest it be asked before it knows us
        self._hear(reply)

    def _hear(self, reply: Reply) -> None:
        """Hand on what is decided; ask a new actor for all that the old one had not granted."""
        self._loss.over()
        if reply.server != self._server:
            known = self._server is not None
            self._server = reply.server
            if known:
                self._ask_again()
        for ticket_id, decided in reply.decided.items():
            self._decide(ticket_id, decided)

    def _decide(self, ticket_id: str, decided: Decided) -> None:
        wait = self._waits.get(ticket_id)
        if wait is None:
            if isinstance(decided, tuple) and not self._link.is_open(ticket_id):
                self._unwanted(ticket_id)  # nobody here holds it, or will
            return
        if decided is None:
            self._letter.tickets[ticket_id] = wait.ticket
            self._send()
            return
        del self._waits[ticket_id]
        self._letter.tickets.pop(ticket_id, None)  # it may be there to be asked for again
        if isinstance(decided, float):
            self._link.closed(ticket_id)
        wait.answer(decided)

    def _ask_again(self) -> None:
        """For every ticket but those in the letter under way: it is answered or repeated."""
        for ticket_id, wait in self._waits.items():
            if ticket_id not in self._under_way.tickets:
                self._letter.tickets[ticket_id] = wait.ticket
        if self._letter:
            self._send()

    async def _replace(self, actor: Any, error: RayActorError) -> None:
        """Look for the lost actor again, and have it asked for all that is waited for. Raises
        `error` once it has been missing for LOST_SECONDS."""
        await self._loss.replace(actor, error)
        self._ask_again()

    def _give_up(self, error: Exception) -> None:
        """Nobody is asked any more; who waits gets the error."""
        self._loss.over()
        self._letter = Letter()
        waits, self._waits = self._waits, {}
        for ticket_id, wait in waits.items():
            self._link.closed(ticket_id)
            if not wait.lease.done():
                wait.lease.set_exception(error)
