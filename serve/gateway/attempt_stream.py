"""A stream of a provider as it passes through: read, understood as far as need be, sent on.

Invariant: each of its events is sent on unchanged, except for the count of tokens that the client
did not ask for; nothing is held but what has come and was not yet taken; however it ends (whole,
cut off, late, closed by the client) its end is reported exactly once, and nothing follows it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp

from serve.ask.contract import Usage
from serve.ask.errors import AskError, TimedOut, Unavailable
from serve.ask.permit import OutcomeKind
from serve.ask.wire import Wire
from serve.gateway.connection import Response
from serve.gateway.contract import Target
from serve.gateway.events import DONE, EventReader, event
from serve.gateway.failures import gateway_error
from serve.gateway.passing import Passing
from serve.gateway.piece import STREAM, piece_of, problem
from serve.gateway.trial import Trial

LINGER_SECONDS: Final = 0.25
"""How long the end of the bytes is waited for after `[DONE]`, so that the connection is kept."""
Ended = Callable[[OutcomeKind, Usage | None], None]
"""Told once how a stream ended."""


class LiveEvents:
    """The events of one stream, an iterator that is closed by whoever does not read it to its
    end."""

    def __init__(
        self,
        response: Response,
        wire: Wire,
        trial: Trial,
        target: Target,
        wants_usage: bool,
        clock: Callable[[], float],
        ended: Ended,
    ) -> None:
        """`trial`: the request that it answers."""
        self._response = response
        self._wire = wire
        self._trial = trial
        self._target = target
        self._about = trial.about
        self._clock = clock
        self._passing = Passing(trial.about, wants_usage, trial.since, clock)
        self._ended = ended
        self._reader = EventReader()
        self._first: list[bytes] = []
        self._ready: deque[bytes] = deque()
        self._begun = False
        self._over = False
        self._reading = False
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, body: Mapping[str, Any]) -> None:
        """Wait for the first payload, which is not sent on before `start`. Raises the AskError that
        it is, where it is no piece of an answer to `body`, and Unavailable where none comes, of
        status 200 if the answer had begun."""
        try:
            while not self._first:
                self._first = await self._read()
        except Unavailable as error:
            if self._begun:
                error.status = 200
            raise
        first = self._first[0]
        if piece_of(first) is None:
            raise problem(first, self._wire, self._response.headers, body, STREAM)

    def start(self) -> None:
        """From now on events are sent on, until the request's time is over."""
        now = self._clock()
        self._about.first_byte = now - self._trial.since
        seconds = self._trial.deadline - now
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        self._take(self._first)

    def __aiter__(self) -> LiveEvents:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._over:
                await self._linger()
                raise StopAsyncIteration
            try:
                self._take(await self._read())
            except AskError as error:
                self._fail(error)
            except BaseException:
                await self.aclose()
                raise
        return self._ready.popleft()

    async def aclose(self) -> None:
        """The client does not want the rest."""
        self._ready.clear()
        self._end("rejected")
        self._response.close()

    async def _read(self) -> list[bytes]:
        """The payloads of what comes next; the end of the bytes is an error, since `[DONE]` goes
        before it."""
        self._reading = True
        try:
            chunk = await self._response.content.readany()
            if chunk:
                self._begun = True
                return self._reader.feed(chunk)
        except (aiohttp.ClientError, OSError) as error:
            raise self._wire.silence(error) from error
        except ValueError as error:
            raise self._wire.garbage(b"", f"{STREAM}: {error}") from error
        finally:
            self._reading = False
        if last := self._reader.end():
            return last
        raise Unavailable(f"{self._wire.base_url} ended a stream before its end")

    def _take(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            if self._over:
                return
            if payload == DONE:
                self._ready.append(event(DONE))
                self._end("ok", self._about.usage)
                return
            try:
                passed = self._passing.event_of(payload)
            except ValueError:
                asked = {"model": self._target.model}
                self._fail(problem(payload, self._wire, {}, asked, STREAM))
                return
            if passed is not None:
                self._ready.append(passed)

    def _fail(self, error: AskError) -> None:
        """The stream is broken: the client is told by an event, and that is the last."""
        if self._over:
            return
        self._ready.append(event(gateway_error(error, self._target).json()))
        self._about.usage = None
        kind: OutcomeKind = "unavailable"
        if isinstance(error, TimedOut):
            # One that was asked late is not to blame for an answer that is not there in time.
            kind = "timed_out" if self._trial.had_its_time(self._clock()) else "rejected"
        self._end(kind)
        self._response.close()

    def _expire(self) -> None:
        late = TimedOut(f"{self._wire.base_url} gave no complete answer in time")
        if self._reading:
            self._response.content.set_exception(late)
            return
        # The client has not read for so long: that says nothing of the provider.
        self._ready.append(event(gateway_error(late, self._target).json()))
        self._end("rejected")
        self._response.close()

    def _end(self, kind: OutcomeKind, usage: Usage | None = None) -> None:
        if self._over:
            return
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self._about.last_byte = self._clock() - self._trial.since
        self._ended(kind, usage)

    async def _linger(self) -> None:
        """Let the connection come back to the pool where only the end of the bytes is missing."""
        if self._response.closed:
            return
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass
        self._response.release()
