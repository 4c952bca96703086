"""Idempotency keys: a request that is sent again gets the answer that it had, and is asked once.

Invariant: within a day one key stands for one body, of one API key. A request that failed, or whose
answer is of no use, leaves nothing, so that it may be sent again; the mark of one that is being
answered expires soon after its time is over, so that a process that dies in between blocks nobody
for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import chain, repeat

from serve.cache.kept import pack, unpack
from serve.cache.partition import canonical, digest
from serve.cache.store import Store
from serve.gateway.contract import Answer, Call, Stream, Whole
from serve.gateway.errors import AnswerNotKept, BadRequest, GatewayError, ProviderTimedOut
from serve.gateway.flight import Work
from serve.gateway.flights import BUFFER_BYTES, Flights
from serve.gateway.replay import replay
from serve.gateway.tee import Tee

DAY = 86_400.0
"""Seconds for which an answer can be had again, as at Stripe, whose header this is."""
GRACE = 5.0
"""Seconds for which the mark of a request outlives its deadline."""
PAUSES = (0.05, 0.1, 0.2, 0.5)
"""Seconds between looks at a request that another replica answers; the last one from then on."""

_UNDER_WAY = b"?"
_ANSWERED = b"!"
_TOO_LARGE = b"+"
_SAID = slice(1, 33)


class Repeats:
    """The idempotency keys of all clients."""

    def __init__(
        self,
        store: Store,
        flights: Flights,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`store`: shared by replicas where they share one."""
        self._store = store
        self._flights = flights
        self._sleep = sleep

    async def once(self, call: Call, work: Work) -> Answer:
        """The answer to `call`, which has an idempotency key: that of the request that had it
        before (`repeated`), or of the one that has it now (`joined`), else that of `work`.

        Raises BadRequest for a key that another body had, AnswerNotKept where the answer was too
        large to be given again, and what `work` raises.
        """
        caller = call.caller
        name = digest(
            b"repeat", *(part.encode() for part in (caller.tenant, caller.key, _key_of(call)))
        )
        said = digest(call.endpoint.encode(), canonical(call.body))
        flight = (name, said)
        loop = asyncio.get_running_loop()
        until = loop.time() + call.timeout
        for pause in chain(PAUSES, repeat(PAUSES[-1])):
            kept = None if flight in self._flights else await self._store.get(name)
            if kept is not None and kept[_SAID] != said:
                raise _reused()
            if kept is not None and kept[:1] == _ANSWERED:
                return replay(call, *unpack(kept[_SAID.stop :]), "repeated")
            if kept is not None and kept[:1] == _TOO_LARGE:
                raise AnswerNotKept(
                    "The first request with this Idempotency-Key was answered, and its answer is "
                    "too large to be kept. To ask again, send it with a new key."
                )
            left = until - loop.time()
            if kept is None:
                ask = partial(self._ask, call, name, said, work)
                with suppress(_AskedElsewhere):
                    return (await self._flights.join(flight, ask, left))[0]
            if left <= pause:
                break
            await self._sleep(pause)
        raise ProviderTimedOut("The first request with this Idempotency-Key has no answer yet.")

    async def _ask(self, call: Call, name: bytes, said: bytes, work: Work) -> Answer:
        if not await self._store.add(name, _UNDER_WAY + said, call.timeout + GRACE):
            raise _AskedElsewhere("another one asks this")
        forget = partial(self._store.delete, name)
        try:
            answer = await work()
        except BaseException:
            await forget()
            raise
        keep = partial(self._keep, call, name, said, answer)
        if isinstance(answer, Whole):
            await keep(answer.body)
            return answer
        large = partial(self._mark_large, name, said)
        return Stream(Tee(answer, BUFFER_BYTES, keep, large, forget), answer.about)

    async def _keep(
        self, call: Call, name: bytes, said: bytes, answer: Answer, body: bytes
    ) -> None:
        if not call.usable(body):
            await self._store.delete(name)
            return
        value = _ANSWERED + said + pack(body, answer.about.target)
        if not await self._store.set(name, value, DAY):
            await self._mark_large(name, said)

    async def _mark_large(self, name: bytes, said: bytes) -> None:
        await self._store.set(name, _TOO_LARGE + said, DAY)


class _AskedElsewhere(GatewayError):
    """Between a look at the store and the mark somebody else began to ask."""


def _key_of(call: Call) -> str:
    if call.idempotency_key is None:
        raise ValueError("the request has no idempotency key")
    return call.idempotency_key


def _reused() -> BadRequest:
    return BadRequest(
        "This Idempotency-Key was sent with another body within a day. Send a new key with a new "
        "request.",
        param="Idempotency-Key",
        code="idempotency_key_reused",
    )
