"""One limiter for a whole Ray cluster: a named actor per URL and key, and the client to it.

While one letter to the actor is under way, what comes up meanwhile collects and goes together in
the next: a client under load sends few and large ones, an idle one sends at once.

Invariant: the key never travels: each client reads it in its own process, and only a hash of it and
the URL names the actor. A client survives the loss of the actor, and of the line to it: on every
new line all that is waited for is asked for again. Whatever goes wrong, nobody waits for a letter
that is not written, and leases that have ended are told of in the next one for as long as the actor
may count them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from serve.ask.contract import Class
from serve.ask.limiter_host import breaker_open
from serve.ask.limiter_letters import Decided, Letter, OutcomeRow, TicketRow, Wait
from serve.ask.limiter_link import AWAY, LimiterAway, LimiterLink
from serve.ask.limiter_server import server_name
from serve.ask.permit import CALL_SECONDS, Lease, LimiterStats, Limits, Outcome, Settled

SETTLE_SECONDS = 2.0
"""How long giving a lease back may take: a paid answer must not wait for a lost actor."""
SOON_SECONDS = 0.005
"""How long a lease that has ended waits for a ticket to go with: half the work of a letter is the
letter itself, and five milliseconds are nothing beside the time that a call takes."""


class RayPermits:
    """`Permits` shared by all who use the same URL and key in this cluster.

    Of the limits that its users name, the strictest hold. Belongs to the loop it is used on. Raises
    Ray's error, or LimiterAway, only when no actor can be had for LOST_SECONDS.
    """

    def __init__(self, url: str, key_env: str | None, limits: Limits) -> None:
        """For the provider at `url`, with the key that this process's environment has under
        `key_env`. Starts the actor where there is none; blocks until it has a name."""
        actor_name = server_name(url, os.environ.get(key_env, "") if key_env else "")
        self._link = LimiterLink(actor_name, limits, self._hear, self._beat)
        self._letter = Letter()
        self._waits: dict[str, Wait] = {}
        self._sending: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """See `Permits.acquire`."""
        ticket = TicketRow(self._link.new_ticket(), cls, tokens, call_seconds)
        granted_at, expires_at = await self._wait_for(ticket)
        self._link.count_sent(tokens)
        return Lease(ticket.id, cls, tokens, granted_at, expires_at)

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
        ticket = TicketRow(self._link.new_ticket(), None, 0, 0.0)
        await self._wait_for(ticket)
        self._link.closed(ticket.id)

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        stats: asyncio.Future[LimiterStats] = asyncio.get_running_loop().create_future()
        self._letter.stats.append(stats)
        self._send()
        return await stats

    async def _wait_for(self, ticket: TicketRow) -> tuple[float, ...]:
        """What is decided. Raises BreakerOpen, and what the loss of the actor raises."""
        wait = Wait(ticket, asyncio.get_running_loop().create_future())
        self._waits[ticket.id] = wait
        self._letter.tickets[ticket.id] = ticket
        self._link.opened(ticket.id)
        self._send()
        try:
            return await wait.decided
        except asyncio.CancelledError:
            self._withdraw(ticket.id)
            raise

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

    def _beat(self) -> None:
        self._letter.beat = True
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
                try:
                    await self._exchange_one()
                except AWAY as error:
                    await self._link.replace(error)
        except Exception as error:
            self._give_up(error)
            if isinstance(error, AWAY):
                # By now an actor has given up what this client had: it was silent for too long.
                self._letter = Letter()
        except BaseException:
            self._give_up(LimiterAway("nobody writes to the limiter of this cluster any more"))
            raise

    async def _exchange_one(self) -> None:
        if not self._link.up:
            await self._link.connect()
            # Whoever is at the other end may know of none of them, or may have told us.
            self._letter.tickets |= {id_: wait.ticket for id_, wait in self._waits.items()}
        letter, self._letter = self._letter, Letter()
        for ticket_id in letter.tickets:
            self._waits[ticket_id].sent = True
        try:
            letter.hear(await self._link.exchange(letter.rows()))
        except BaseException:
            self._letter.repeat(letter, self._waits)
            raise

    def _hear(self, decided: Mapping[str, Decided]) -> None:
        for ticket_id, each in decided.items():
            self._decide(ticket_id, each)

    def _decide(self, ticket_id: str, decided: Decided) -> None:
        wait = self._waits.get(ticket_id)
        if wait is None:
            if isinstance(decided, tuple) and not self._link.is_open(ticket_id):
                self._unwanted(ticket_id)  # nobody here holds it, or will
        elif decided is None:
            self._letter.tickets[ticket_id] = wait.ticket
            self._send()
        else:
            del self._waits[ticket_id]
            if isinstance(decided, float):
                self._end_wait(wait, breaker_open(decided))
            elif not wait.decided.done():
                wait.decided.set_result(decided)

    def _give_up(self, error: Exception) -> None:
        """Nobody is asked any more; who waits gets the error. What has ended is told of in the next
        letter, whenever there is one."""
        self._link.give_up()
        letter, self._letter = self._letter, self._letter.ended()
        waits, self._waits = self._waits, {}
        for wait in waits.values():
            self._end_wait(wait, error)
        letter.give_up(error)

    def _end_wait(self, wait: Wait, error: Exception) -> None:
        self._link.closed(wait.ticket.id)
        if not wait.decided.done():
            wait.decided.set_exception(error)
