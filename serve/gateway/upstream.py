"""One request to providers: the first that can answer it does.

Invariant: nothing but a GatewayError leaves `ask` (cancellation apart), and nothing takes longer
than the request's own timeout; the next target is asked only while the one before is failing, and
never once an answer has begun.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serve.ask.errors import AskError, RateLimited, TimedOut
from serve.ask.limiter_host import Permits
from serve.ask.permit import LimiterStats
from serve.ask.settings import Provider
from serve.gateway.contract import Answer, Call, Target
from serve.gateway.errors import GatewayError, ProviderDown
from serve.gateway.failures import ABOUT_THE_REQUEST, gateway_error
from serve.gateway.one_provider import OneProvider, Trial

ASKED_SECONDS: Final = 1.0
"""How long the limiter is waited for to say when there is room again."""


class Upstream:
    """All providers. Belongs to the loop of its first request."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        permits: Callable[[Provider], Permits],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises Misconfigured where the environment lacks the key of a provider."""
        self._clock = clock
        self._providers = {
            name: OneProvider(each, permits(each), clock) for name, each in providers.items()
        }

    async def ask(self, call: Call, targets: Sequence[Target], since: float) -> Answer:
        """The answer of the first of `targets` (at least one) that is not failing. `since`: when
        the request arrived, by the clock. Raises a GatewayError."""
        trial = Trial(call, since, since + call.timeout)
        try:
            async with asyncio.timeout(trial.deadline - self._clock()) as limit:
                trial.late = limit.expired
                return await self._first(trial, targets)
        except TimeoutError:
            raise await self._too_late(trial, targets[0]) from trial.failure

    async def aclose(self) -> None:
        """Close all connections."""
        for each in self._providers.values():
            await each.aclose()

    async def _first(self, trial: Trial, targets: Sequence[Target]) -> Answer:
        for place, target in enumerate(targets, start=1):
            others = place < len(targets)
            try:
                return await self._providers[target.provider].ask(trial, target, others)
            except AskError as error:
                if not others or isinstance(error, ABOUT_THE_REQUEST) or error.status == 200:
                    raise gateway_error(error, target) from error
        raise ProviderDown("no provider is set up for this model")

    async def _too_late(self, trial: Trial, first: Target) -> GatewayError:
        """Why there was no answer in time."""
        target = trial.target or first
        if trial.phase == "retry" and trial.failure is not None:
            return gateway_error(trial.failure, target)
        if trial.phase == "provider":
            return gateway_error(TimedOut("no answer in time"), target)
        wait = None
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                wait = _room_in(await self._providers[target.provider].permits.stats())
        except TimeoutError:
            pass
        return gateway_error(RateLimited("no permit in time", retry_after=wait), target)


def _room_in(stats: LimiterStats) -> float:
    """Seconds until the limiter grants again; 1 where a permit has to come back first."""
    refill = 0.0
    if stats.rpm is not None and stats.at_once is not None:
        refill = (1.0 - stats.at_once) * 60.0 / stats.rpm
    return max(stats.paused, stats.next_in or 0.0, refill, 1.0)
