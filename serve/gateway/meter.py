"""How much each key may ask and spend: who is asked, and the meter of one process.

Invariant: a request of a limited key is sent only after its `begin` returned, and whatever becomes
of it then is told to `end` once; one that a cache, an equal request in flight or an earlier answer
serves never begins, and costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from serve.ask.answers import default_path
from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_host import MeterHost

LAZY_SECONDS = 0.05
"""After which what ended is written down where nothing that begins takes it along."""


class Meter(Protocol):
    """Who keeps keys within their limits. A key without limits is never refused."""

    async def begin(self, key: KeyRecord, ticket: str, tokens: int, worst: Decimal | None) -> None:
        """A request is about to be sent. `ticket`: unique to it; `tokens`: input and output as
        expected; `worst`: the most it may cost in the key's currency, None where that is not known.

        Never waits for a limit: raises KeyRateLimited, KeySpent (both with the seconds after which
        it may go), Forbidden where a limited key asks for what has no known price, KeyUncounted
        where nobody can count. Then, and when it is cancelled, it counts for nothing.
        """
        ...

    async def end(
        self, key: KeyRecord, ticket: str, tokens: int | None, cost: Decimal | None
    ) -> None:
        """The request is over: `tokens` that it took, what it cost. None: nobody knows, it counts
        as expected, and for its worst. Once for each `begin`; repeated it changes nothing. Never
        fails."""
        ...

    async def aclose(self) -> None:
        """Nothing is asked any more; what was told is kept."""
        ...


def state_folder(state: str | None) -> Path:
    """Where the accounts of keys are kept: `serve.state`, else beside the user's answers."""
    return Path(state).expanduser().absolute() if state else default_path().parent


class LocalMeter:
    """`Meter` for one process and one loop."""

    def __init__(
        self,
        state: Path,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """What keys spend is kept in the folder `state`. `clock`: seconds that never go back;
        `wall`: since the epoch."""
        self._host = MeterHost(state, clock, wall)
        self._waiting: list[asyncio.Future[GatewayError | None]] = []
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    async def begin(self, key: KeyRecord, ticket: str, tokens: int, worst: Decimal | None) -> None:
        """See `Meter.begin`."""
        if not key.limited:
            return
        if not self._host.begin(key, ticket, tokens, worst):
            return
        try:
            failed = await self._written()
        except asyncio.CancelledError:
            self._host.withdraw(ticket)
            self._write_later()
            raise
        if failed is not None:
            raise failed

    async def end(
        self, key: KeyRecord, ticket: str, tokens: int | None, cost: Decimal | None
    ) -> None:
        """See `Meter.end`."""
        if key.limited:
            self._host.end(ticket, tokens, cost)
            self._write_later()

    async def aclose(self) -> None:
        """See `Meter.aclose`."""
        self._write()
        self._host.close()

    async def _written(self) -> GatewayError | None:
        """Write, together with all others that begin in this turn of the loop."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[GatewayError | None] = loop.create_future()
        self._waiting.append(waiter)
        if self._soon is None:
            self._soon = loop.call_soon(self._write)
        return await waiter

    def _write_later(self) -> None:
        if self._later is None and self._host.unwritten:
            self._later = asyncio.get_running_loop().call_later(LAZY_SECONDS, self._write)

    def _write(self) -> None:
        for handle in (self._soon, self._later):
            if handle is not None:
                handle.cancel()
        self._soon = self._later = None
        waiting, self._waiting = self._waiting, []
        failed = self._host.write()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(failed)
