"""The limiter on an asyncio loop: waiting and timers, no decisions.

Invariant: the limiter is stepped after every change and when it asks to be, so that whoever may go
goes at once; a waiter that is cancelled leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from serve.ask.contract import Class
from serve.ask.errors import AskError, BreakerOpen
from serve.ask.limiter import Limiter
from serve.ask.permit import CALL_SECONDS, Lease, LimiterStats, Limits, Outcome, Settled

SHORTEST_TIMER = 0.001
"""Seconds; below it a timer that fires early would spin."""

_T = TypeVar("_T")


class Permits(Protocol):
    """The limiter as those see it who ask a provider."""

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """Wait for the permit to send one request of about `tokens`, input and output together,
        that takes at most `call_seconds`; the lease expires half a minute later.

        Class `online` raises BreakerOpen while the breaker is open; the others wait.
        """
        ...

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        """Give the permit back. A lease that has expired changes nothing."""
        ...

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        """The same, for who does not wait for what comes of it."""
        ...

    async def retry_token(self) -> None:
        """Wait until the retry budget has a token, and take it."""
        ...

    async def stats(self) -> LimiterStats:
        """The limiter at this moment."""
        ...


class TicketLost(Exception):
    """The ticket expired with its holder while it waited."""


Answer = Callable[[Lease | AskError | TicketLost], None]
"""What is done with the answer to a ticket: a lease, BreakerOpen, or that it is lost."""
RetryAnswer = Callable[[TicketLost | None], None]
"""The same of a ticket for a token of the retry budget: None, it has one."""


class LimiterHost:
    """Hosts one limiter for callers that name their tickets; an id is never used for two.

    Belongs to the loop it is used on. What changes something without deciding (`enqueue`,
    `enqueue_retry`, `release`, `leave`) is followed by one `step`.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limiter = Limiter(limits, clock())
        self._answers: dict[str, Answer] = {}
        self._retry_answers: dict[str, RetryAnswer] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    async def acquire(
        self, ticket_id: str, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS
    ) -> Lease:
        """See `Permits.acquire`. Raises TicketLost when the ticket is made to expire."""
        waiter: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self.enqueue(ticket_id, cls, tokens, call_seconds, lambda given: _resolve(waiter, given))
        self.step()
        try:
            return await waiter
        except asyncio.CancelledError:
            self.withdraw(ticket_id)
            raise

    async def retry_token(self, ticket_id: str) -> None:
        """See `Permits.retry_token`. Raises TicketLost when the ticket is made to expire."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.enqueue_retry(ticket_id, lambda given: _resolve(waiter, given))
        self.step()
        try:
            await waiter
        except asyncio.CancelledError:
            self.withdraw(ticket_id)
            raise

    def settle(self, lease_id: str, outcome: Outcome) -> Settled:
        """See `Permits.settle`."""
        settled = self.release(lease_id, outcome)
        if self._limiter.anybody_waits:
            self.step()
        return settled

    def withdraw(self, ticket_id: str) -> None:
        """The ticket is not wanted any more; its lease, if it has one, was not used."""
        self.leave(ticket_id)
        self.step()

    def enqueue(
        self, ticket_id: str, cls: Class, tokens: int, call_seconds: float, answer: Answer
    ) -> None:
        """Have `answer` called once it is decided. A ticket that is asked for again, since its
        answer was lost on the way, keeps its place, or gets the lease that it has."""
        if (lease := self._limiter.lease(ticket_id)) is not None:
            answer(lease)
            return
        if ticket_id not in self._answers:
            self._limiter.enqueue(ticket_id, cls, tokens, call_seconds)
        self._answers[ticket_id] = answer

    def enqueue_retry(self, ticket_id: str, answer: RetryAnswer) -> None:
        """Have `answer` called once there is a token of the retry budget."""
        self._limiter.enqueue_retry(ticket_id)
        self._retry_answers[ticket_id] = answer

    def release(self, lease_id: str, outcome: Outcome) -> Settled:
        """The call under a lease has ended."""
        return self._limiter.settle(lease_id, outcome, self._clock())

    def leave(self, ticket_id: str) -> None:
        """The ticket is not wanted any more; its lease, if it has one, was not used."""
        self._limiter.withdraw(ticket_id, self._clock())
        self._drop(ticket_id)

    def expire(self, ticket_ids: Collection[str]) -> None:
        """The holder of the tickets is gone; their leases, where they have one, may have been used.

        All at once, lest the permit of one is granted to another of the same holder.
        """
        for ticket_id in ticket_ids:
            self._limiter.expire(ticket_id, self._clock())
            self._drop(ticket_id)
        self.step()

    def set_limits(self, limits: Limits) -> None:
        """Go on under other limits; what is in flight stays."""
        self._limiter.set_limits(limits, self._clock())
        self.step()

    def sent_before(self, requests: int, tokens: int) -> None:
        """So much was sent in the last minute under a limiter that is gone."""
        self._limiter.sent_before(requests, tokens, self._clock())

    def stats(self) -> LimiterStats:
        """The limiter at this moment."""
        return self._limiter.stats(self._clock())

    def step(self) -> None:
        """Decide everything that can be decided now, and wake up for the next."""
        now = self._clock()
        decided = self._limiter.step(now)
        for lease in decided.granted:
            self._answers.pop(lease.id)(lease)
        for ticket_id in decided.retries:
            self._retry_answers.pop(ticket_id)(None)
        for ticket_id, seconds in decided.refused.items():
            self._answers.pop(ticket_id)(breaker_open(seconds))
        self._wake_at(decided.wake_at, now)

    def _wake_at(self, at: float, now: float) -> None:
        """Step again at that time, or sooner: a timer that is due before is left, since to set one
        for every lease would cost more than to step once too often."""
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
            self._timer = None
        if at < math.inf:
            self._timer_at = at
            delay = max(SHORTEST_TIMER, at - now)
            self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.step()

    def _drop(self, ticket_id: str) -> None:
        lost = TicketLost(ticket_id)
        if (answer := self._answers.pop(ticket_id, None)) is not None:
            answer(lost)
        if (retry := self._retry_answers.pop(ticket_id, None)) is not None:
            retry(lost)


def breaker_open(seconds: float) -> BreakerOpen:
    """The error for one who is turned away and may try again in `seconds`."""
    message = f"the provider is failing: try again in {math.ceil(seconds)} s"
    return BreakerOpen(message, retry_after=seconds)


def _resolve(waiter: asyncio.Future[_T], given: _T | Exception) -> None:
    """A waiter that was cancelled meanwhile withdraws what it got when it wakes."""
    if waiter.done():
        return
    if isinstance(given, Exception):
        waiter.set_exception(given)
    else:
        waiter.set_result(given)


class InProcessPermits:
    """`Permits` for one process and one loop."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = LimiterHost(limits, clock)
        self._ids = itertools.count()

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS) -> Lease:
        """See `Permits.acquire`."""
        return await self._host.acquire(str(next(self._ids)), cls, tokens, call_seconds)

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        """See `Permits.settle`."""
        return self._host.settle(lease.id, outcome)

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        """See `Permits.settle_soon`."""
        self._host.settle(lease.id, outcome)

    async def retry_token(self) -> None:
        """See `Permits.retry_token`."""
        await self._host.retry_token(str(next(self._ids)))

    async def stats(self) -> LimiterStats:
        """See `Permits.stats`."""
        return self._host.stats()
