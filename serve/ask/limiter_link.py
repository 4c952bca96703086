"""The line to the limiter of a cluster: the handle to its actor, and who is at this end.

Invariant: one who waits for a lost actor looks for it for LOST_SECONDS and no longer; while
anything of this client is open, it beats, and what it was granted in the last minute is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from collections import deque
from typing import Any

from ray.exceptions import RayActorError

from serve.ask.holders import BEAT_SECONDS
from serve.ask.limiter_letters import Caller
from serve.ask.limiter_server import find_server
from serve.ask.permit import LimiterStats, Limits

LOST_SECONDS = 60.0
"""How long a client looks for a lost actor before it gives up; a restart takes a second or two."""
LOST_PAUSE_SECONDS = 0.2
MINUTE = 60.0


class LimiterLink:
    """One client's line to the actor of a name. Belongs to the loop it is used on."""

    def __init__(self, actor_name: str, limits: Limits) -> None:
        """Starts the actor where there is none; blocks until it has a name."""
        self.name = uuid.uuid4().hex
        """The client's."""
        self.actor: Any = find_server(actor_name, limits)
        self._actor_name = actor_name
        self._limits = limits
        self._finding = asyncio.Lock()
        self._ids = itertools.count()
        self._open: set[str] = set()
        self._beating: asyncio.Task[None] | None = None
        self._sent: deque[tuple[float, int]] = deque()
        self._sent_tokens = 0

    def new_ticket(self) -> str:
        """An id that no other ticket of the cluster has."""
        return f"{self.name}-{next(self._ids)}"

    def opened(self, ticket_id: str) -> None:
        """Something is waited for or held under the ticket."""
        self._open.add(ticket_id)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    def closed(self, ticket_id: str) -> None:
        """Nothing is any more."""
        self._open.discard(ticket_id)

    def is_open(self, ticket_id: str) -> bool:
        """Whether anything is."""
        return ticket_id in self._open

    def count_sent(self, tokens: int) -> None:
        """A request of so many tokens was granted."""
        self._sent.append((time.monotonic(), tokens))
        self._sent_tokens += tokens

    def caller(self) -> Caller:
        """This client, as it presents itself."""
        while self._sent and self._sent[0][0] < time.monotonic() - MINUTE:
            self._sent_tokens -= self._sent.popleft()[1]
        return Caller(self.name, self._limits, len(self._sent), self._sent_tokens)

    async def find(self, actor: Any) -> None:
        """Have another handle than the lost `actor`."""
        async with self._finding:
            if self.actor is actor:
                await asyncio.sleep(LOST_PAUSE_SECONDS)
                self.actor = await asyncio.to_thread(find_server, self._actor_name, self._limits)

    async def retry_token(self) -> None:
        """See `Permits.retry_token`. Raises Ray's error when the actor cannot be had."""
        loss = Loss(self)
        taken = False
        while not taken:
            ticket_id = self.new_ticket()
            self.opened(ticket_id)
            actor = self.actor
            try:
                # None, which is no token: the caller was taken for dead and may ask again.
                taken = await actor.retry_token.remote(self.caller(), ticket_id) is not None
            except BaseException as error:
                actor.withdraw.remote(self.name, ticket_id)
                if not isinstance(error, RayActorError):
                    raise
                await loss.replace(actor, error)
            finally:
                self.closed(ticket_id)

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`. Raises Ray's error when the actor cannot be had."""
        loss = Loss(self)
        while True:
            actor = self.actor
            try:
                stats: LimiterStats = await actor.stats.remote()
                return stats
            except RayActorError as error:
                await loss.replace(actor, error)

    async def _beat(self) -> None:
        while self._open:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(RayActorError):  # the next ticket or settle finds the actor
                await self.actor.beat.remote(self.name)


class Loss:
    """How long one who asks has been without the actor."""

    def __init__(self, link: LimiterLink) -> None:
        self._link = link
        self._since: float | None = None

    def over(self) -> None:
        """The actor has answered, or nobody is asked any more."""
        self._since = None

    async def replace(self, actor: Any, error: RayActorError) -> None:
        """Look for the lost `actor` again. Raises `error` once it has been missing for
        LOST_SECONDS."""
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since >= LOST_SECONDS:
            raise error
        await self._link.find(actor)
