"""One provider as the gateway asks it: permit -> attempt -> classify -> retry.

Invariant: nothing is sent again once the answer to it has begun, and nothing more often than
PAUSES says where somebody else can be asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from serve.ask.errors import AskError, RateLimited, Unavailable, Unsupported
from serve.ask.limiter_host import Permits
from serve.ask.settings import Provider
from serve.gateway.attempt import Attempts
from serve.gateway.contract import Answer, Call, Target
from serve.gateway.gate import Gate, NoPermit, NoTime
from serve.gateway.outgoing import Outgoing
from serve.gateway.trial import Trial, Usual

PAUSES: Final = (0.25, 0.5, 1.0)
"""Seconds before each retry of a request, with some jitter; a client waits, so they are shorter
than those of the job."""


class OneProvider:
    """Asks one provider. Belongs to one loop."""

    def __init__(self, provider: Provider, permits: Permits, clock: Callable[[], float]) -> None:
        """Raises Misconfigured where the environment lacks the provider's key."""
        self.permits = permits
        self.gate = Gate(permits, clock)
        self._usual = Usual()
        self._outgoing = Outgoing(provider)
        self._attempts = Attempts(provider, self.gate, self._outgoing, self._usual, clock)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._attempts.aclose()

    def needed(self, call: Call, target: Target) -> float:
        """Seconds that answers to such a call usually take; 0 where that is not known."""
        return self._usual.seconds(call, target.model)

    async def room_in(self) -> float | None:
        """Seconds until it takes requests again; None where nobody says."""
        return await self.gate.room_in()

    async def ask(self, trial: Trial, target: Target, others: bool) -> Answer:
        """The answer of `target`, retried as its errors allow. `others`: somebody else can be asked
        instead, so that a closed door is not knocked at again. Raises an AskError."""
        trial.target = target
        call = trial.call
        tries = 0
        failure: AskError | None = None
        patience = self.gate.patience(trial) + trial.about.queued if others else math.inf
        while True:
            tokens = self._outgoing.tokens(call, target.model)
            try:
                lease = await self.gate.enter(
                    trial, tokens, self.needed(call, target), patience - trial.about.queued
                )
            except (NoPermit, NoTime) as error:
                # There would be time for another attempt, had the last one not failed.
                raise failure or error from error
            try:
                return await self._attempts.one(trial, target, lease)
            except Unsupported as error:
                if not self._outgoing.step_down(call, target.model, error):
                    raise
            except RateLimited as error:
                self.gate.heed(error.retry_after)
                if others and tries >= len(PAUSES):
                    raise
                failure = error
                tries += others
            except Unavailable as error:
                self.gate.heed(error.retry_after)
                if error.status == 200 or tries >= len(PAUSES) or (others and not error.sent):
                    raise
                failure = error
                pause = PAUSES[tries] if error.retry_after is None else error.retry_after
                # While it is open, the breaker says whether to go on, and at once.
                if not trial.breaker_open and not await self.gate.again(trial, pause, others):
                    raise
                tries += 1
