"""Single flight: of equal requests at once, one is asked; the others get its answer.

Invariant: a flight belongs to nobody. It ends by its own deadline, that of the request that began
it, and goes on when that one leaves: its answer is paid for and will be kept. Only MOST_ORPHANS
flights at a time are finished for nobody, one more is ended. Its error is everybody's, except what
is wrong with the API key that began it, where others have another, or its time, where others have
more: then the next one of those begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from serve.gateway.contract import Answer
from serve.gateway.errors import (
    Forbidden,
    KeyRateLimited,
    KeySpent,
    KeyUncounted,
    NotAuthorized,
    Overloaded,
    ProviderTimedOut,
)
from serve.gateway.flight import Flight, Work

BUFFER_BYTES = 4 * 2**20
"""Of one stream: about 20,000 events of one token each, more than models put out at once."""
MOST_ORPHANS = 64
"""Flights that nobody waits for, of one replica: a third of what it answers at once (200)."""
GRACE = 1.5
"""Seconds that work which is out of time has to say why: it may ask the limiter for a second."""
MARGIN = 0.1
"""Seconds after its deadline at which a flight has surely said so."""

_OF_ONE_KEY = (NotAuthorized, Forbidden, KeyRateLimited, KeySpent, KeyUncounted)
_OF_ITS_TIME = (ProviderTimedOut, Overloaded)
"""Overloaded: its time may have been over before it had its turn."""


class Flights:
    """All flights of one replica."""

    def __init__(
        self,
        buffer_bytes: int = BUFFER_BYTES,
        most_orphans: int = MOST_ORPHANS,
        grace: float = GRACE,
    ) -> None:
        self._grace = grace
        self._buffer_bytes = buffer_bytes
        self._most_orphans = most_orphans
        self._open: dict[Hashable, Flight] = {}
        self._under_way: dict[Flight, Hashable] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._open

    async def join(
        self, key: Hashable, work: Work, seconds: float, whose: str = ""
    ) -> tuple[Answer, bool]:
        """The answer of the flight `key`, begun with `work` if there is none, and whether it was
        there already: then its `about` says `joined` and costs nothing. Streams that differ (with
        usage, without) are not equal: make that part of `key`. `seconds`: for all of this request,
        and of a flight that it begins; `whose`: the API key that asks.

        Raises GatewayError. A Stream must be read to its end or closed.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            flight = self._open.get(key)
            joined = flight is not None
            if flight is None:
                flight = self._begin(key, work, until, whose)
            # Who is out of time together with the flight waits for what that has to say.
            together = flight.until <= until + self._grace
            wait = max(until, flight.until + MARGIN) if together else until
            try:
                return await flight.answer(wait, joined), joined
            except _OF_ONE_KEY:
                if flight.whose == whose:
                    raise
            except _OF_ITS_TIME:
                if not joined or max(flight.until, loop.time()) >= until:
                    raise

    async def aclose(self) -> None:
        """End all flights."""
        tasks = [flight.task for flight in self._under_way]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, work: Work, until: float, whose: str) -> Flight:
        flight = Flight(
            work, until + self._grace, self._buffer_bytes, self._shut, self._orphaned, whose
        )
        self._open[key] = flight
        self._under_way[flight] = key
        flight.task.add_done_callback(lambda _: self._end(flight))
        return flight

    def _shut(self, flight: Flight) -> None:
        key = self._under_way[flight]
        if self._open.get(key) is flight:
            del self._open[key]

    def _end(self, flight: Flight) -> None:
        self._shut(flight)
        flight.end()
        del self._under_way[flight]

    def _orphaned(self, flight: Flight) -> None:
        orphans = sum(1 for each in self._under_way if each.waiting == 0)
        if orphans > self._most_orphans:
            # It may take a while to end: who comes meanwhile begins anew.
            self._shut(flight)
            flight.task.cancel()
