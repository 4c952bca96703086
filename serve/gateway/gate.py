"""The limiter of one provider as a request sees it: may it go, when, and may it go again.

Invariant: whatever the limiter fails by is an AskError; nobody is let through with less time left
than an answer needs, and nobody waits here for longer than is of use.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from typing import Final

from serve.ask.errors import AskError, RateLimited, Unavailable
from serve.ask.limiter_host import Permits
from serve.ask.permit import Lease, LimiterStats, Outcome
from serve.gateway.trial import Trial

JITTER: Final = 0.25
"""Of a pause, so much more at most."""
TOKEN_SECONDS: Final = 1.0
"""How long a token of the retry budget is waited for where somebody else can be asked."""
PERMIT_SECONDS: Final = 5.0
"""How long a permit is waited for where somebody else can be asked: as long as a breaker is open
at first."""
PERMIT_SHARE: Final = 0.25
"""Of the time that is left then, at most."""
ASKED_SECONDS: Final = 1.0
"""How long the limiter is waited for to say when there is room again."""
_LOG = logging.getLogger(__name__)


class NoPermit(RateLimited):
    """The limits let nobody through in time."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, None, retry_after)
        self.args = (message, retry_after)


class NoTime(AskError):
    """The request's time had gone before it came to the limiter."""


class LimiterLost(Unavailable):
    """The limiter that all share cannot be reached: nothing is sent without it."""

    sent = False


class Gate:
    """Belongs to one loop."""

    def __init__(self, permits: Permits, clock: Callable[[], float]) -> None:
        self._permits = permits
        self._clock = clock
        self._paused_until = 0.0
        self._random = random.Random()

    def patience(self, trial: Trial) -> float:
        """Seconds of the rest of a request's time that permits are waited for where somebody else
        can be asked."""
        return min(PERMIT_SECONDS, (trial.deadline - self._clock()) * PERMIT_SHARE)

    async def enter(
        self, trial: Trial, tokens: int, needed: float, patience: float = math.inf
    ) -> Lease:
        """The permit to send about `tokens`, within `patience` seconds and with at least the
        seconds `needed` left for the answer. Raises BreakerOpen, LimiterLost, NoPermit, NoTime,
        and RateLimited where the provider wants to be left alone for longer than that."""
        trial.phase = "permit"
        asked_at = self._clock()
        left = trial.deadline - asked_at
        most = min(left - needed, patience)
        if self._paused_until > asked_at + most:
            wait = self._paused_until - asked_at
            raise RateLimited(f"asked to wait {wait:.0f} s", retry_after=wait)
        if most <= 0:
            raise NoPermit("no permit in time") if trial.crowded else NoTime("no time left")
        try:
            async with asyncio.timeout(most):
                lease = await self._permits.acquire("online", tokens, left)
        except TimeoutError:
            trial.crowded = True
            raise NoPermit("no permit in time") from None
        except AskError:
            raise
        except Exception as error:
            raise _lost(error) from error
        finally:
            trial.about.queued += self._clock() - asked_at
        trial.phase = "provider"
        return lease

    def heed(self, seconds: float | None) -> None:
        """The provider asked to be left alone for so long: the limiter sees to that, and who has
        less time need not wait in vain."""
        if seconds is not None:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    async def again(self, trial: Trial, seconds: float, others: bool) -> bool:
        """Wait until the failed request may be sent again, after about `seconds`; False where it
        may not in time. Raises LimiterLost."""
        seconds *= 1 + self._random.uniform(0, JITTER)
        if self._clock() + seconds >= trial.deadline:
            return False
        try:
            async with asyncio.timeout(TOKEN_SECONDS if others else None):
                await self._permits.retry_token()
        except TimeoutError:
            return False
        except Exception as error:
            raise _lost(error) from error
        await asyncio.sleep(seconds)
        return True

    async def leave(self, lease: Lease, outcome: Outcome) -> bool:
        """The attempt under `lease` failed; whether the breaker is open now."""
        return (await self._permits.settle(lease, outcome)).breaker_open

    def leave_soon(self, lease: Lease, outcome: Outcome) -> None:
        """The same for who does not wait for what comes of it."""
        self._permits.settle_soon(lease, outcome)

    async def room_in(self) -> float | None:
        """Seconds until the limiter grants again; None where it does not say."""
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                return _room_in(await self._permits.stats())
        except Exception:
            return None


def _room_in(stats: LimiterStats) -> float:
    """1 where a permit has to come back first."""
    refill = 0.0
    if stats.rpm is not None and stats.at_once is not None:
        refill = (1.0 - stats.at_once) * 60.0 / stats.rpm
    return max(stats.paused, stats.next_in or 0.0, refill, 1.0)


def _lost(error: Exception) -> LimiterLost:
    _LOG.warning("the limiter cannot be reached: %s", error, exc_info=error)
    return LimiterLost("the limiter cannot be reached")
