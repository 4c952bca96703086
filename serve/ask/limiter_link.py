"""The way to the limiter of a cluster: the handle to its actor, the line to it, and who is at this
end.

Invariant: an actor that is lost is looked for for LOST_SECONDS and no longer; while anything of
this client is open it is heard of every BEAT_SECONDS, and what it was granted in the last minute is
counted; the line ends with the tasks of its loop.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ray.exceptions import RayActorError

from serve.ask.holders import BEAT_SECONDS
from serve.ask.limiter_letters import Caller, Decided, Reply, Rows
from serve.ask.limiter_line import Address, Line, connect
from serve.ask.limiter_server import find_server
from serve.ask.permit import Limits

LOST_SECONDS = 60.0
"""How long a client looks for a lost actor before it gives up; a restart takes a second or two."""
LOST_PAUSE_SECONDS = 0.2
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""Within which a letter is answered, and nobody is waited for to do so: the other end is gone, or
its machine, otherwise."""
MINUTE = 60.0


class LimiterAway(Exception):
    """The limiter's process cannot be reached, though the cluster knows it, or the line to it
    broke."""


AWAY = (LimiterAway, RayActorError)
"""What it is that the actor, or the line to it, is lost."""


class LimiterLink:
    """One client's way to the actor of a name. `hear`: told what is decided, as it arrives;
    `speak`: asked to write a letter, be it an empty one, since it is time for a beat or the line is
    lost, and something is open. Belongs to the loop it is used on."""

    def __init__(
        self,
        actor_name: str,
        limits: Limits,
        hear: Callable[[Mapping[str, Decided]], None],
        speak: Callable[[], None],
    ) -> None:
        """Starts the actor where there is none; blocks until it has a name."""
        self.actor: Any = find_server(actor_name, limits)
        self._name = uuid.uuid4().hex
        self._actor_name = actor_name
        self._limits = limits
        self._hear = hear
        self._speak = speak
        self._line: Line | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._lost_since: float | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._ids = itertools.count()
        self._open: set[str] = set()
        self._sent: deque[tuple[float, int]] = deque()
        self._sent_tokens = 0

    def new_ticket(self) -> str:
        """An id that no other ticket of the cluster has."""
        return f"{self._name}-{next(self._ids)}"

    def opened(self, ticket_id: str) -> None:
        """Something is waited for or held under the ticket."""
        self._open.add(ticket_id)
        self._keep()

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
        self._forget_sent()

    @property
    def up(self) -> bool:
        """Whether there is a line."""
        return self._line is not None

    async def connect(self) -> None:
        """Have a line. Raises LimiterAway, and Ray's error where the actor is lost."""
        address: Address = await self.actor.address.remote()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                line = await connect(address, self._heard, self._lost)
        except OSError as error:
            raise LimiterAway(
                f"the limiter of this cluster does not answer at {address.host}:{address.port} "
                f"({error or type(error).__name__}): nodes have to reach each other's ports"
            ) from error
        if line.over:
            raise LimiterAway("the limiter of this cluster ended the connection at once")
        self._line = line
        self._keep()
        self._forget_sent()
        caller = Caller(self._name, self._limits, len(self._sent), self._sent_tokens)
        line.say(caller.plain())

    async def exchange(self, letter: Rows) -> Reply:
        """Write a letter on the line that there is, and wait for the reply. Raises LimiterAway."""
        if self._line is None:
            raise LimiterAway("there is no line to the limiter of this cluster")
        loop = asyncio.get_running_loop()
        self._reply = loop.create_future()
        patience = loop.call_later(ANSWER_SECONDS, self._line.end)
        try:
            self._line.say(letter)
            return await self._reply
        finally:
            patience.cancel()

    async def replace(self, error: Exception) -> None:
        """Look for the lost actor again. Raises `error` once it has been missing for
        LOST_SECONDS."""
        now = time.monotonic()
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since >= LOST_SECONDS:
            raise error
        await asyncio.sleep(LOST_PAUSE_SECONDS)
        self.actor = await asyncio.to_thread(find_server, self._actor_name, self._limits)

    def give_up(self) -> None:
        """Look for it no longer."""
        self._lost_since = None

    def _heard(self, value: Any) -> None:
        try:
            reply = Reply(*value)
        except TypeError as error:
            raise ValueError("no reply") from error
        self._lost_since = None
        self._hear(reply.decided)
        if reply.breaker_open is not None and self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)

    def _lost(self) -> None:
        if self._line is None:
            return  # it was over before it was ours, or nobody needs it any more
        self._line = None
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(LimiterAway("the line to the limiter broke"))
        elif self._open:
            self._speak()

    def _keep(self) -> None:
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        try:
            while self._open or self._line is not None:
                await asyncio.sleep(BEAT_SECONDS)
                if self._open:
                    self._speak()
        finally:
            line, self._line = self._line, None
            if line is not None:
                line.end()

    def _forget_sent(self) -> None:
        while self._sent and self._sent[0][0] < time.monotonic() - MINUTE:
            self._sent_tokens -= self._sent.popleft()[1]
