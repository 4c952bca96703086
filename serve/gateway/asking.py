"""One call of a key on its way to a provider: the key's rate and money, then its turn.

Invariant: what a call takes (its turn, its part of the key's rate and money) is given back exactly
once, however it ends; nobody is asked with less time left than an answer needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from serve.gateway.admission import Admission
from serve.gateway.bound import Costs, most_tokens
from serve.gateway.charge import Charge
from serve.gateway.contract import Answer, Answered, Call, Stream
from serve.gateway.errors import Overloaded
from serve.gateway.held import Held
from serve.gateway.keys import KeyRecord
from serve.gateway.meter import Meter
from serve.gateway.upstream import Upstream

_T = TypeVar("_T")


class Asking:
    """Asks the providers. Belongs to one loop."""

    def __init__(
        self,
        upstream: Upstream,
        admission: Admission,
        meter: Meter,
        costs: Costs,
        clock: Callable[[], float],
    ) -> None:
        self._upstream = upstream
        self._admission = admission
        self._meter = meter
        self._costs = costs
        self._clock = clock

    async def ask(self, call: Call, key: KeyRecord | None, since: float) -> Answer:
        """The answer of a provider, within the key's rate and money and in its turn. `since`: when
        the request arrived, by the clock. Raises a GatewayError."""
        about = Answered()
        charge = self._charge(call, key, about)
        if charge is not None:
            await self._in_time(charge.begin(), call, since)
        turn = self._admission.turn()

        async def give_back(error: BaseException | None = None) -> None:
            turn.end()
            if charge is not None:
                await charge.end(error)

        try:
            if not turn.begin_now():
                about.queued = await self._in_time(turn.begin(), call, since)
            answer = await self._upstream.ask(call, call.targets, since, about)
        except BaseException as error:
            await give_back(error)
            raise
        if isinstance(answer, Stream):
            return Stream(Held(answer, give_back), answer.about)
        await give_back()
        return answer

    def _charge(self, call: Call, key: KeyRecord | None, about: Answered) -> Charge | None:
        """What is held of the key for a call; None where its key has no limits."""
        if key is None or not key.limited:
            return None
        cost = None if key.max_spend is None else self._costs.most(call, key.currency)
        return Charge(self._meter, key, about, most_tokens(call), cost)

    async def _in_time(self, waits: Awaitable[_T], call: Call, since: float) -> _T:
        """Wait for it with enough time left for an answer. Raises Overloaded."""
        until = since + call.timeout - self._upstream.needed(call)
        try:
            async with asyncio.timeout(until - self._clock()):
                return await waits
        except TimeoutError:
            raise Overloaded(
                "The request's time was over, or too little of it left, before it had its turn; "
                "try again later.",
                retry_after=1,
            ) from None
