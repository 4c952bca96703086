"""A stream of one of the cluster's own models as it passes through.

Invariant: nothing is held but the first chunk until it is taken; however it ends (whole, broken,
late, closed by the client) its end is reported exactly once, its call is over then, and nothing
follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from serve.ask.contract import Usage
from serve.ask.errors import AskError, TimedOut, Unavailable
from serve.gateway.contract import Target
from serve.gateway.events import DONE, event
from serve.gateway.failures import gateway_error
from serve.gateway.passing import Passing
from serve.gateway.trial import Trial

Ended = Callable[[Usage | None], None]
"""Told once that a stream ended, and what was counted where it did so whole."""


class LocalEvents:
    """The events of one stream, an iterator that is closed by whoever does not read it to its
    end."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        trial: Trial,
        target: Target,
        wants_usage: bool,
        clock: Callable[[], float],
        ended: Ended,
    ) -> None:
        """`trial`: the request that it answers."""
        self._chunks = chunks
        self._trial = trial
        self._target = target
        self._clock = clock
        self._ended = ended
        self._passing = Passing(trial.about, wants_usage, trial.since, clock)
        self._first: bytes | None = None
        self._over = False

    async def open(self) -> None:
        """Wait for the first chunk. Raises the AskError that comes instead."""
        try:
            self._first = await anext(self._chunks)
        except StopAsyncIteration:
            raise Unavailable(f"{self._target} ended a stream before it began", 200) from None
        self._trial.about.first_byte = self._clock() - self._trial.since

    def __aiter__(self) -> LocalEvents:
        return self

    async def __anext__(self) -> bytes:
        while not self._over:
            try:
                passed = self._passing.event_of(await self._read())
            except StopAsyncIteration:
                self._end(self._trial.about.usage)
                return event(DONE)
            except (AskError, ValueError) as error:
                return await self._fail(error)
            except BaseException:
                await self.aclose()
                raise
            if passed is not None:
                return passed
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """The client does not want the rest."""
        self._end(None)
        await self._chunks.aclose()

    async def _read(self) -> bytes:
        """The next chunk, within the time of the request."""
        if (first := self._first) is not None:
            self._first = None
            return first
        try:
            async with asyncio.timeout(self._trial.deadline - self._clock()):
                return await anext(self._chunks)
        except TimeoutError:
            raise TimedOut(f"{self._target} gave no complete answer in time") from None

    async def _fail(self, error: AskError | ValueError) -> bytes:
        """The stream is broken: the client is told by an event, and that is the last."""
        if not isinstance(error, AskError):
            error = Unavailable(f"{self._target} gave what is no chunk of a chat", 200)
        self._trial.about.usage = None
        await self.aclose()
        return event(gateway_error(error, self._target).json())

    def _end(self, usage: Usage | None) -> None:
        if self._over:
            return
        self._over = True
        self._trial.about.last_byte = self._clock() - self._trial.since
        self._ended(usage)
