"""One request to providers: the first that can answer it does.

Invariant: nothing but a GatewayError leaves `ask` (cancellation apart), and nothing takes longer
than the request's own timeout; the next target is asked only while the one before is failing, and
never once an answer has begun.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from serve.ask.errors import AskError, RateLimited, TimedOut
from serve.ask.limiter_host import Permits
from serve.ask.settings import Provider
from serve.gateway.contract import Answer, Answered, Call, Target
from serve.gateway.errors import GatewayError, ProviderDown
from serve.gateway.failures import ABOUT_THE_REQUEST, gateway_error
from serve.gateway.gate import NoPermit
from serve.gateway.one_provider import OneProvider
from serve.gateway.trial import Trial
from serve.models.settings import LOCAL


class AnyProvider(Protocol):
    """Who answers for some targets: one provider, or the cluster's own models."""

    def needed(self, call: Call, target: Target) -> float:
        """Seconds that answers to such a call usually take; 0 where that is not known."""
        ...

    async def ask(self, trial: Trial, target: Target, others: bool) -> Answer:
        """The answer of `target`. `others`: somebody else can be asked instead. Raises an
        AskError."""
        ...

    async def room_in(self) -> float | None:
        """Seconds until it takes requests again; None where nobody says."""
        ...

    async def aclose(self) -> None:
        """Let go of what it holds."""
        ...


class Upstream:
    """All providers. Belongs to the loop of its first request."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        permits: Callable[[Provider], Permits],
        clock: Callable[[], float] = time.monotonic,
        local: AnyProvider | None = None,
    ) -> None:
        """`local`: the cluster's own models. Raises Misconfigured where the environment lacks the
        key of a provider."""
        self._clock = clock
        self._providers: dict[str, AnyProvider] = {
            name: OneProvider(each, permits(each), clock) for name, each in providers.items()
        }
        if local is not None:
            self._providers[LOCAL] = local

    def needed(self, call: Call) -> float:
        """Seconds that answers to such a call usually take, of the fastest whom it may be asked of;
        0 where that is not known."""
        return min(self._providers[each.provider].needed(call, each) for each in call.targets)

    async def ask(
        self,
        call: Call,
        targets: Sequence[Target],
        since: float,
        about: Answered | None = None,
    ) -> Answer:
        """The answer of the first of `targets` (at least one) that is not failing. `since`: when
        the request arrived, by the clock; `about`: filled as far as it comes, also where it fails.
        Raises a GatewayError."""
        trial = Trial(call, since, since + call.timeout, about or Answered())
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
                    raise await self._told(error, target) from error
        raise ProviderDown("no provider is set up for this model")

    async def _too_late(self, trial: Trial, first: Target) -> GatewayError:
        """Why there was no answer in time."""
        target = trial.target or first
        if trial.phase == "retry" and trial.failure is not None:
            return await self._told(trial.failure, target)
        if trial.phase == "provider":
            return gateway_error(TimedOut("no answer in time"), target)
        return await self._told(NoPermit("no permit in time"), target)

    async def _told(self, error: AskError, target: Target) -> GatewayError:
        """What the client is told, with the time after which there is room where nobody said."""
        if isinstance(error, RateLimited) and error.retry_after is None:
            error.retry_after = await self._providers[target.provider].room_in()
        return gateway_error(error, target)
