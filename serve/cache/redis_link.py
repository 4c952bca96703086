"""Commands of many callers over one connection to Redis, those that wait together in one go.

Invariant: nobody waits longer than two budgets; after a failure, whatever it was, the connection is
never used again (a late reply would answer another command), and nothing is asked for some seconds,
so that a Redis that is gone costs each request nothing. One connection a replica, however many
requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, ResponseError

from serve.ask.redis_place import RedisPlace

BUDGET_SECONDS = 0.05
"""To connect, send and read what waits together. A Redis nearby takes under a millisecond; what
takes longer than a twentieth of a second is no help to a cache."""
LOOKS = 5
"""By which a budget runs out, each due a fifth of it after the one before: a loop that is busy
elsewhere for a second delays one of them, and what came meanwhile is read before the last."""
PAUSE_SECONDS = 2.0
"""For which nothing is asked after a connection was refused, or `SLOW` budgets in a row ran out."""
SLOW = 3
"""One long command of somebody else lets a budget run out, and Redis is well."""
TOGETHER = 128
"""Commands at most in one go."""
WAITING = 2_000
"""Commands that may wait: some seconds of a replica's requests. One more is turned away."""

_log = logging.getLogger(__name__)


class RedisAway(Exception):
    """Redis did not answer, or would not do it."""


class RedisRefused(RedisAway):
    """Redis answered that it would not do it."""


class _Asked(NamedTuple):
    command: Sequence[bytes | int]
    answer: asyncio.Future[Any]
    until: int
    """The look at which its time is over."""


class RedisLink:
    """The connection of one replica. Belongs to the loop it is used on."""

    def __init__(
        self,
        place: RedisPlace,
        budget: float = BUDGET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is connected yet. `budget`: see `BUDGET_SECONDS`; `clock`: monotonic seconds."""
        self._place = place
        self._budget = budget
        self._clock = clock
        # Makes connections of the right kind; it never has one of its own.
        self._client = Redis(
            **place.options(),
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
        )
        self._connection: AbstractConnection | None = None
        self._waiting: list[_Asked] = []
        self._sending: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        self._slow = 0
        self._batch: Sequence[_Asked] = ()
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None

    async def do(self, *command: bytes | int) -> Any:
        """Redis's reply to `command`. Raises RedisAway."""
        if self._clock() < self._quiet_until or len(self._waiting) >= WAITING:
            raise RedisAway
        answer = asyncio.get_running_loop().create_future()
        asked = _Asked(command, answer, self._looks + 2 * LOOKS)
        self._waiting.append(asked)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
            self._look_later()
        return await asked.answer

    async def aclose(self) -> None:
        """Close the connection; who still waits is told that Redis is away."""
        self._quiet_until = math.inf
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        # A task that is cancelled before it began does not get to its end.
        _turn_away(self._waiting)
        await self._disconnect()

    async def _send(self) -> None:
        try:
            while self._waiting:
                self._batch, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                await self._exchange(self._batch)
        finally:
            # Whatever ended it, nobody is left waiting.
            _turn_away([*self._batch, *self._waiting])
            self._batch, self._waiting = (), []
            self._sending = None
            if self._timer is not None:
                self._timer.cancel()

    def _look_later(self) -> None:
        pause = self._budget / LOOKS
        self._timer = asyncio.get_running_loop().call_later(pause, self._look)

    def _look(self) -> None:
        """Turn away whose two budgets are over, see `LOOKS`; what is under way goes on, and its
        reply is nobody's."""
        self._looks += 1
        _turn_away([asked for asked in self._batch if asked.until <= self._looks])
        late = sum(asked.until <= self._looks for asked in self._waiting)
        _turn_away(self._waiting[:late])
        del self._waiting[:late]
        self._look_later()

    async def _exchange(self, batch: Sequence[_Asked]) -> None:
        """Send a batch and hand the replies out."""
        try:
            async with _Within(self._budget):
                replies = await self._replies([asked.command for asked in batch])
        except Exception as error:
            # Who speaks no protocol of Redis makes its client raise anything.
            await self._fail(error)
            _turn_away(batch)
            return
        self._slow = 0
        for asked, reply in zip(batch, replies, strict=True):
            if asked.answer.done():
                continue
            if isinstance(reply, Exception):
                asked.answer.set_exception(RedisRefused())
            else:
                asked.answer.set_result(reply)

    async def _replies(self, commands: Sequence[Sequence[bytes | int]]) -> list[Any]:
        """The reply to each command, or the error that it is. Not by a pipeline of `Redis`, which
        takes three times as long (measured: 200 us for one command, 60 so)."""
        connection: Any = self._connection
        if connection is None:
            pool: Any = self._client.connection_pool
            connection = self._connection = pool.make_connection()
            await connection.connect()
        replies: list[Any] = []
        await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        for _ in commands:
            try:
                replies.append(await connection.read_response())
            except BusyLoadingError:
                raise
            except ResponseError as error:
                replies.append(error)
        return replies

    async def _fail(self, error: Exception) -> None:
        self._slow += 1
        if not isinstance(error, TimeoutError) or self._slow >= SLOW:
            self._quiet_until = self._clock() + PAUSE_SECONDS
            self._slow = 0
            _turn_away(self._waiting)
            self._waiting = []
            _log.warning("%s is not asked for %g s: %s", self._place, PAUSE_SECONDS, _words(error))
        await self._disconnect()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.disconnect(nowait=True)


class _Within:
    """Raises TimeoutError where the block takes longer than `budget` seconds, see `LOOKS`."""

    def __init__(self, budget: float) -> None:
        self._pause = budget / LOOKS
        self._looks = 0
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)
        self._timer = self._loop.call_later(self._pause, self._look)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, traceback)

    def _look(self) -> None:
        self._looks += 1
        if self._looks == LOOKS:
            self._limit.reschedule(self._loop.time())
        else:
            self._timer = self._loop.call_later(self._pause, self._look)


def _turn_away(batch: Sequence[_Asked]) -> None:
    for asked in batch:
        if not asked.answer.done():
            asked.answer.set_exception(RedisAway())


def _words(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
