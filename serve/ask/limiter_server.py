"""The limiter of a cluster, as an actor: it hosts one for clients that write letters.

A client finds the actor by its name and is told by it where to connect; all else is said over that
line, since a call to an actor takes a millisecond of both processes' time. A client's letter holds
all that it has to say: tickets it asks for, leases that have ended, tickets it does not want any
more. The reply comes at once and holds what is decided; what is decided later follows by itself.

Invariant: an answer that is lost on its way is given again when the client asks again; the actor
survives the loss of a client, and ends itself when nobody has waited or held a lease for ten
minutes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import asdict
from functools import partial
from typing import Any

import ray

from serve.ask.errors import BreakerOpen
from serve.ask.holders import Holders
from serve.ask.limiter_door import Door
from serve.ask.limiter_host import LimiterHost
from serve.ask.limiter_letters import Caller, Decided, OutcomeRow, Reply, Rows, TicketRow
from serve.ask.limiter_line import Address, Line
from serve.ask.permit import Lease, Limits, Outcome

PROTOCOL = 3
"""Part of the actor's name: raised when clients and actors of two versions cannot talk."""
NAMESPACE = "fupan"
WATCH_SECONDS = 1.0
IDLE_SECONDS = 600.0


class LimiterActor:
    """The actor: a host that knows its callers. It ends itself `idle_seconds` after its last use.
    `host`: the address on which it listens; None: that of its node, as Ray knows it, where other
    nodes reach Ray too."""

    def __init__(
        self, limits: Limits, idle_seconds: float = IDLE_SECONDS, host: str | None = None
    ) -> None:
        self._host = LimiterHost(limits)
        self._holders = Holders()
        self._clients: dict[str, Client] = {}
        self._idle_seconds = idle_seconds
        self._used_at = time.monotonic()
        loop = asyncio.get_running_loop()
        self._door = Door(lambda: _Guest(self).line)
        self._listens_on = host or ray.util.get_node_ip_address()
        self._opening = loop.create_task(self._door.open(self._listens_on))
        self._watching = loop.create_task(self._watch())

    async def address(self) -> Address:
        """Where it listens. Raises OSError where it cannot; who asks again has it try again."""
        opening = self._opening
        if opening.done() and (opening.cancelled() or opening.exception() is not None):
            loop = asyncio.get_running_loop()
            opening = self._opening = loop.create_task(self._door.open(self._listens_on))
        return await opening

    def welcome(self, caller: Caller, line: Line) -> Client:
        """Somebody has come; an older line of the same client is over, so that nothing is heard
        late that was on its way there."""
        if self._holders.join(caller.name, caller.limits, time.monotonic()):
            self._host.sent_before(caller.sent_requests, caller.sent_tokens)
        self._fit_limits()
        client = self._clients.setdefault(caller.name, Client(caller.name))
        if client.line is not None:
            client.line.end()
        client.line = line
        return client

    def answer(self, client: Client, letter: Rows) -> Reply:
        """What comes of a letter; nothing is waited for."""
        self._holders.beat(client.name, time.monotonic())
        breaker_open = [self._end(client, row) for row in letter.outcomes]
        for ticket in letter.tickets:
            self._begin(client, ticket)
        for ticket_id in letter.unwanted:
            self._holders.end(client.name, ticket_id)
            self._host.leave(ticket_id)
        self._host.step()
        stats = asdict(self._host.stats()) if letter.stats else None
        return Reply(client.take(), breaker_open, stats)

    def _end(self, client: Client, row: OutcomeRow) -> bool:
        lease_id, kind, tokens, retry_after, headers, status = row
        self._holders.end(client.name, lease_id)
        outcome = Outcome(kind, tokens, retry_after, headers, status)
        return self._host.release(lease_id, outcome).breaker_open

    def _begin(self, client: Client, row: TicketRow) -> None:
        ticket_id, cls, tokens, call_seconds = row
        self._holders.begin(client.name, ticket_id)
        client.decided.pop(ticket_id, None)  # what was decided before may not hold any more
        answer = partial(self._decide, client, ticket_id)
        if cls is None:
            self._host.enqueue_retry(ticket_id, answer)
        else:
            self._host.enqueue(ticket_id, cls, tokens, call_seconds, answer)

    def _decide(self, client: Client, ticket_id: str, given: Lease | Exception | None) -> None:
        decided: Decided = None
        if isinstance(given, Lease):
            decided = given.granted_at, given.expires_at
        else:
            self._holders.end(client.name, ticket_id)
            if given is None:
                decided = ()
            elif isinstance(given, BreakerOpen):
                decided = given.retry_after
        client.decide(ticket_id, decided)

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
            for name in [name for name in self._clients if not self._holders.knows(name)]:
                self._clients.pop(name).leave()
            self._fit_limits()
            if self._holders.busy:
                self._used_at = now
            elif now - self._used_at >= self._idle_seconds:
                ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


class Client:
    """One who writes letters: its line, and what is decided that it has not been told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line: Line | None = None
        self.decided: dict[str, Decided] = {}
        self._telling = False

    def decide(self, ticket_id: str, decided: Decided) -> None:
        """Something is decided: it goes with the reply to a letter, or by itself at the end of this
        turn of the loop."""
        self.decided[ticket_id] = decided
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def take(self) -> dict[str, Decided]:
        """What is decided, to be told now."""
        taken, self.decided = self.decided, {}
        return taken

    def leave(self) -> None:
        """It was not heard for so long that it is forgotten: it has to present itself again."""
        if self.line is not None:
            self.line.end()

    def _tell(self) -> None:
        self._telling = False
        if self.decided and self.line is not None:
            self.line.say(Reply(self.take()))


class _Guest:
    """Who is at the other end of one line: a client, once it has presented itself."""

    def __init__(self, actor: LimiterActor) -> None:
        self._actor = actor
        self._client: Client | None = None
        self.line = Line(self._hear, self._lost)

    def _hear(self, value: Any) -> None:
        if self._client is None:
            self._client = self._actor.welcome(Caller.read(value), self.line)
        else:
            self.line.say(self._actor.answer(self._client, Rows.read(value)))

    def _lost(self) -> None:
        if self._client is not None and self._client.line is self.line:
            self._client.line = None


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
    )
    return actor.remote(limits)
