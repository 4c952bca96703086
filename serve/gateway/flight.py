"""One flight: a piece of work that several requests wait for.

Invariant: the work runs once, in a task of its own, until its deadline; every reader of a stream
gets each event once, from the first on. At most `buffer_bytes` of events are held, unless a single
event is larger: past them nobody new is let in, what everybody has read is dropped, and the
slowest reader sets the pace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Self

from serve.gateway.contract import Answer, Answered, Stream, Whole
from serve.gateway.errors import Draining, GatewayError, ProviderTimedOut

Work = Callable[[], Awaitable[Answer]]
"""What a flight does. It runs once, whoever leaves: turns and bills belong in it."""

TOO_LATE = "The provider gave no complete answer within the time of this request."
FAILED = "The gateway failed in the middle of this answer."
ENDED = "The gateway ended this request before it had its answer. Send it again."

_LOG = logging.getLogger(__name__)


class Flight:
    """Belongs to the running loop. `waiting`: how many requests want its answer; `until`: its
    deadline by the loop's clock."""

    def __init__(
        self,
        work: Work,
        until: float,
        buffer_bytes: int,
        shut: Callable[[Flight], None],
        left: Callable[[Flight], None],
        whose: str,
    ) -> None:
        """`shut` is called when nobody can come any more, `left` when nobody waits any more;
        `whose`: the API key that began it."""
        self.whose = whose
        self.waiting = 0
        self.until = until
        self._buffer_bytes = buffer_bytes
        self._on_shut = shut
        self._on_left = left
        self._arrived: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._readers: set[Reader] = set()
        self._events: list[bytes] = []
        self._dropped = 0
        self._held = 0
        self._full = False
        self._over = False
        self._moved = asyncio.Event()
        self.task = asyncio.create_task(self._run(work))

    async def answer(self, until: float, joined: bool) -> Answer:
        """Its answer, for one more request that waits until `until`; free where it `joined`.

        Raises GatewayError.
        """
        self.waiting += 1
        try:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait((self._arrived,), timeout=max(left, 0))
            if not self._arrived.done():
                raise ProviderTimedOut(TOO_LATE)
            error = self._arrived.exception()
            if error is not None:
                raise error.with_traceback(None)
            answer = self._arrived.result()
            about = _free(answer.about) if joined else answer.about
            if isinstance(answer, Whole):
                return Whole(answer.body, about)
            return Stream(Reader(self, until, about, answer.about), about)
        finally:
            self._leave()

    async def _run(self, work: Work) -> None:
        try:
            async with asyncio.timeout_at(self.until):
                answer = await work()
                self._arrived.set_result(answer)
                if isinstance(answer, Stream):
                    try:
                        await self._collect(answer)
                    finally:
                        await answer.aclose()
        except TimeoutError:
            self._fail(ProviderTimedOut(TOO_LATE))
        except asyncio.CancelledError:
            self._fail(Draining(ENDED, retry_after=1))
            raise
        except Exception as error:
            self._fail(error)
            if not isinstance(error, GatewayError):
                _LOG.exception("a request that may be shared failed")
        finally:
            self._on_shut(self)
            self.end()

    def end(self) -> None:
        """Nothing comes any more: the work is over, or was ended before it began."""
        if not self._arrived.done():
            self._fail(Draining(ENDED, retry_after=1))
        self._over = True
        self._wake()

    async def _collect(self, answer: Stream) -> None:
        async for event in answer.events:
            self._add(event)
            while self._held > self._buffer_bytes:
                if not self._full:
                    self._full = True
                    self._on_shut(self)
                self._drop()
                if self._held > self._buffer_bytes:
                    self._moved.clear()
                    await self._moved.wait()

    def _add(self, event: bytes) -> None:
        self._events.append(event)
        self._held += len(event)
        self._wake()

    def _drop(self) -> None:
        """Forget what all readers have read; nobody comes any more."""
        if self.waiting > len(self._readers):
            return  # somebody was told of the answer and has not begun to read it
        everything = self._dropped + len(self._events)
        read = min((reader.at for reader in self._readers), default=everything)
        gone = self._events[: read - self._dropped]
        del self._events[: len(gone)]
        self._dropped = read
        self._held -= sum(map(len, gone))

    def _fail(self, error: Exception) -> None:
        if not self._arrived.done():
            self._arrived.set_exception(error)
            self._arrived.exception()  # seen: nobody may be left to look
        else:
            shown = error if isinstance(error, GatewayError) else GatewayError(FAILED)
            self._add(b"data: " + shown.json() + b"\n\n")

    def _wake(self) -> None:
        for reader in self._readers:
            reader.more.set()

    def _leave(self) -> None:
        self.waiting -= 1
        self._moved.set()
        if self.waiting == 0 and not self._over:
            self._on_left(self)


class Reader:
    """The events of a flight, for one request: every one, from the first on."""

    def __init__(self, flight: Flight, until: float, about: Answered, source: Answered) -> None:
        self.at = 0
        self.more = asyncio.Event()
        self._flight = flight
        self._until = until
        self._about = about
        self._source = source
        flight.waiting += 1
        flight._readers.add(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        flight = self._flight
        while self in flight._readers:
            if self.at < flight._dropped + len(flight._events):
                event = flight._events[self.at - flight._dropped]
                self.at += 1
                flight._moved.set()
                return event
            if flight._over:
                self._complete()
                await self.aclose()
                break
            self.more.clear()
            try:
                async with asyncio.timeout_at(self._until):
                    await self.more.wait()
            except TimeoutError:
                await self.aclose()
                return b"data: " + ProviderTimedOut(TOO_LATE).json() + b"\n\n"
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Leave; harmless to repeat."""
        if self in self._flight._readers:
            self._flight._readers.discard(self)
            self._flight._leave()

    def _complete(self) -> None:
        if self._about is not self._source:
            self._about.target = self._source.target
            self._about.usage = self._source.usage
            self._about.finish_reason = self._source.finish_reason


def _free(about: Answered) -> Answered:
    """What is said of an answer to who joined: whose it is, at no cost, in no currency, as of what
    was kept."""
    return replace(about, cache="joined", cost=Decimal(0), currency=None, attempts=0)
