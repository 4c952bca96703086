"""Whether a request has to be asked at all: not if it was sent before, is kept, or is being asked.

Invariant: what a request asks is asked by at most one call at a time where answers may be shared;
what it may not share is asked for it alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from serve.cache.caches import Caches
from serve.cache.recheck import Rechecks
from serve.cache.store import Store
from serve.gateway.contract import Answer, Call, Stream, Whole
from serve.gateway.errors import GatewayError
from serve.gateway.flight import Work
from serve.gateway.flights import BUFFER_BYTES, Flights
from serve.gateway.repeats import Repeats
from serve.gateway.replay import replay
from serve.gateway.request import wants_usage
from serve.gateway.tee import Tee


class Recall:
    """What one replica remembers of answers, and of the requests it is asking."""

    def __init__(
        self, caches: Caches, store: Store, ask: Callable[[Call], Awaitable[Answer]]
    ) -> None:
        """`caches` keep answers in `store`; `ask` asks a provider for whom no client waits."""
        self.caches = caches
        self._store = store
        self._ask = ask
        self._flights = Flights()
        self._repeats = Repeats(store, self._flights)
        self.rechecks = Rechecks(self._live, self._keep, caches.forget)

    async def answer(self, call: Call, ask: Work) -> Answer:
        """The answer to `call`: one that is there, or what `ask` gives. Raises GatewayError."""
        if call.idempotency_key is not None:
            return await self._repeats.once(call, partial(self._cached, call, ask))
        return await self._cached(call, ask)

    def checked(self) -> dict[tuple[str, ...], float]:
        """How many hits, by (cache, outcome), were asked live as well."""
        checks = self.rechecks
        right = checks.checked - checks.wrong
        outcomes = {
            "right": right,
            "wrong": checks.wrong,
            "failed": checks.failed,
            "skipped": checks.skipped,
        }
        return {
            (kind, outcome): count
            for outcome, counted in outcomes.items()
            for kind, count in counted.items()
        }

    async def aclose(self) -> None:
        """End what is being asked for nobody, and let go of the store."""
        await self.rechecks.aclose()
        await self._flights.aclose()
        await self.caches.aclose()
        await self._store.aclose()

    async def _cached(self, call: Call, ask: Work) -> Answer:
        if not call.wish.kinds:
            return await ask()
        hit = await self.caches.find(call)
        if hit is not None and call.usable(hit.body):
            if hit.checked:
                self.rechecks.start(call, hit)
            return replay(call, hit.body, hit.target, hit.kind)
        kept = partial(self._kept, call, ask)
        if call.wish.fresh:
            return await kept()
        equals = (self.caches.key(call), call.stream, call.stream and wants_usage(call.body))
        answer, _ = await self._flights.join(equals, kept, call.timeout, call.caller.key)
        return answer

    async def _kept(self, call: Call, ask: Work) -> Answer:
        answer = await ask()
        about = answer.about
        about.cache = "miss"
        if isinstance(answer, Whole):
            await self._keep(call, answer)
            return answer

        async def keep(body: bytes) -> None:
            await self.caches.keep(call, body, about.target)

        return Stream(Tee(answer, BUFFER_BYTES, keep, _nothing, _nothing), about)

    async def _keep(self, call: Call, answer: Whole) -> None:
        await self.caches.keep(call, answer.body, answer.about.target)

    async def _live(self, call: Call) -> Whole:
        answer = await self._ask(call)
        if isinstance(answer, Whole):
            return answer
        await answer.aclose()
        raise GatewayError("a stream where none was asked for")


async def _nothing() -> None:
    """Nothing is kept."""
