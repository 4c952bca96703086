"""What one request takes from its key: an amount held while it lasts, and what it came to.

Invariant: what is begun is ended exactly once: with what the provider counted, with nothing where
nobody answered, or with what was held where nobody can tell.
"""

from __future__ import annotations

import secrets
from decimal import Decimal

from serve.gateway.contract import Answered
from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord
from serve.gateway.meter import Meter

NOTHING = Decimal(0)


class Charge:
    """One request's account with its key."""

    def __init__(
        self, meter: Meter, key: KeyRecord, about: Answered, tokens: int, worst: Decimal | None
    ) -> None:
        """`about`: what is known of its answer, filled by whoever asks for it; `tokens`: input and
        output that it may take; `worst`: the most it may cost."""
        self._about = about
        self._meter = meter
        self._key = key
        self._tokens = tokens
        self._worst = worst
        self._ticket = secrets.token_hex(8)

    async def begin(self) -> None:
        """Raises KeyRateLimited and KeySpent; then there is nothing to end."""
        await self._meter.begin(self._key, self._ticket, self._tokens, self._worst)

    async def end(self, error: BaseException | None) -> None:
        """The request is over; `error`: what it failed by."""
        tokens: int | None = None
        cost: Decimal | None = None
        about = self._about
        if isinstance(error, GatewayError) or not about.written:
            tokens, cost = 0, NOTHING
        elif about.usage is not None:
            tokens = about.usage.tokens_in + about.usage.tokens_out
            cost = about.cost
        await self._meter.end(self._key, self._ticket, tokens, cost)
