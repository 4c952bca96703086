"""One limiter for a whole Ray cluster: a named actor per URL and key, and the client to it.

While one letter to the actor is under way, what comes up meanwhile collects and goes together in
the next: a client under load sends few and large ones, an idle one sends at once. Where nothing is
scarce, an online request takes the place of one that has ended, and the actor is told later.

Invariant: the key never travels: each client reads it in its own process, and only a hash of it and
the URL names the actor. A client survives the loss of the actor: what was asked is asked again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ray.exceptions import RayActorError

from serve.ask.contract import Class
from serve.ask.kept import KEPT_SECONDS, Kept, KeptLeases
from serve.ask.limiter_letters import (
    Decided,
    Letter,
    OutcomeRow,
    Reply,
    SwapRow,
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
LATER_SECONDS = 0.05
"""The same where requests go before they are told; a letter takes two milliseconds of processor
time, and a call that is told so late is well within the SKEW that the buckets allow for."""


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
        self._waits: dict[str, Wait] = {}
        self._sending: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._kept = KeptLeases()
        self._looking: asyncio.TimerHandle | None = None

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """See `Permits.acquire`."""
        ticket = TicketRow(self._link.new_ticket(), cls, tokens, call_seconds)
        if cls == "online" and (kept := self._kept.take(tokens)) is not None:
            self._link.count_sent(tokens)
            return self._swap(kept.lease, kept.ended, ticket)
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
        if outcome.kind == "ok" and lease.cls == "online" and self._pass_on(lease, outcome):
            return
        self._settle(lease, outcome, None)
        self._tell_later()

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
        if outcome.kind in ("rate_limited", "unavailable", "timed_out"):
            self._give_back(self._kept.drain())

    def _pass_on(self, lease: Lease, outcome: Outcome) -> bool:
        """Have a request that waits and is not asked for yet, or the next that comes, take the
        place of the call that has ended; False: it is to be given back."""
        ended = OutcomeRow.of(lease, outcome)
        for ticket in self._letter.tickets.values():
            wait = self._waits[ticket.id]
            if ticket.cls == "online" and not wait.lease.done() and self._kept.fits(ticket.tokens):
                del self._letter.tickets[ticket.id], self._waits[ticket.id]
                wait.lease.set_result(self._swap(lease, ended, ticket))
                return True
        if not self._kept.keep(lease, ended, time.monotonic()):
            return False
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._look)
        return True

    def _swap(self, lease: Lease, ended: OutcomeRow, ticket: TicketRow) -> Lease:
        """The lease under which a request goes in the place of one that has ended."""
        self._link.closed(lease.id)
        self._link.opened(ticket.id)
        self._letter.swaps.append(SwapRow(ended, ticket))
        self._kept.went(ticket.tokens)
        self._tell_later()
        return replace(lease, id=ticket.id, tokens=ticket.tokens)

    def _look(self) -> None:
        self._looking = None
        self._give_back(self._kept.old(time.monotonic()))
        if self._kept:
            self._looking = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._look)

    def _give_back(self, kept: Sequence[Kept]) -> None:
        for lease, ended, _ in kept:
            self._link.closed(lease.id)
            self._letter.outcomes[lease.id] = ended, None
        if kept:
            self._send()

    def _forget_kept(self) -> None:
        """They are lost with the actor that granted them."""
        for lease, _, _ in self._kept.drain():
            self._link.closed(lease.id)

    def _tell_later(self) -> None:
        """Send what there is to say now, or soon, as it is wanted."""
        if self._urgent or (self._waits and not self._kept.allowed):
            self._send()
        elif self._later is None:
            delay = LATER_SECONDS if self._kept.allowed else SOON_SECONDS
            self._later = asyncio.get_running_loop().call_later(delay, self._send_later)

    @property
    def _urgent(self) -> bool:
        """Whether somebody waits for what is to be said, or nothing more may go before it is."""
        return self._letter.urgent or bool(self._letter.swaps and not self._kept.allowed)

    def _withdraw(self, ticket_id: str) -> None:
        self._waits.pop(ticket_id, None)
        self._link.closed(ticket_id)
        if self._letter.tickets.pop(ticket_id, None) is None:
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
            if self._letter:
                await self._exchange_one()
            while self._urgent or (self._letter and not self._kept.allowed):
                await self._exchange_one()
            if self._letter:
                self._tell_later()
        except Exception as error:
            self._give_up(error)

    async def _exchange_one(self) -> None:
        letter, self._letter = self._letter, Letter()
        if self._later is not None:
            self._later.cancel()
            self._later = None
        actor = self._link.actor
        try:
            reply: Reply = await actor.exchange.remote(self._link.caller(), *letter.rows())
        except RayActorError as error:
            self._letter.repeat(letter, self._waits)
            await self._replace(actor, error)
            return
        letter.tell_settled(reply.breaker_open)
        self._hear(reply, letter)
        undecided = len(self._waits) > len(self._letter.tickets)
        if undecided and (self._collecting is None or self._collecting.done()):
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
        self._hear(reply, None)

    def _hear(self, reply: Reply, letter: Letter | None) -> None:
        """Hand on what is decided; ask a new actor for all that the old one had not granted."""
        self._loss.over()
        asked = letter.tickets if letter is not None else {}
        if reply.server != self._server:
            known = self._server is not None
            self._server = reply.server
            if known:
                self._forget_kept()
                self._ask_again(asked)
        if letter is not None:
            self._kept.allow(reply.ahead, self._letter.swaps)
            if not reply.ahead[0]:
                self._give_back(self._kept.drain())
        for ticket_id, decided in reply.decided.items():
            self._decide(ticket_id, decided)

    def _decide(self, ticket_id: str, decided: Decided) -> None:
        wait = self._waits.get(ticket_id)
        if wait is None:  # withdrawn meanwhile, which the actor will hear
            return
        if decided is None:
            self._letter.tickets[ticket_id] = wait.ticket
            self._send()
            return
        del self._waits[ticket_id]
        if isinstance(decided, float):
            self._link.closed(ticket_id)
        wait.answer(decided)

    def _ask_again(self, asked: Mapping[str, TicketRow]) -> None:
        """For every ticket but those just `asked` for."""
        for ticket_id, wait in self._waits.items():
            if ticket_id not in asked:
                self._letter.tickets[ticket_id] = wait.ticket
        if self._letter:
            self._send()

    async def _replace(self, actor: Any, error: RayActorError) -> None:
        """Look for the lost actor again, and have it asked for all that is waited for. Raises
        `error` once it has been missing for LOST_SECONDS."""
        self._forget_kept()
        await self._loss.replace(actor, error)
        self._ask_again({})

    def _give_up(self, error: Exception) -> None:
        """Nobody is asked any more; who waits gets the error."""
        self._loss.over()
        self._letter = Letter()
        waits, self._waits = self._waits, {}
        for ticket_id, wait in waits.items():
            self._link.closed(ticket_id)
            if not wait.lease.done():
                wait.lease.set_exception(error)
