"""The limiter: who may send a request to the provider, and when. Pure: values and a clock in,
decisions out.

Whoever hosts it calls `step` after every other call and at the time `step` asks for; nothing is
granted outside `step`. Times are seconds of one monotonic clock that the host passes in.

Invariants: every ticket is granted once, refused once or withdrawn once; the permits in use are the
leases neither settled nor expired; at most `max_concurrency` of them, and over any span no more
requests or tokens than the provider's own buckets hold, where the limits are right.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from serve.ask.aimd import Concurrency
from serve.ask.allowance import Allowance
from serve.ask.breaker import Breaker
from serve.ask.contract import Class
from serve.ask.fairness import Queues, Ticket
from serve.ask.in_flight import InFlight
from serve.ask.permit import (
    CALL_SECONDS,
    CLASSES,
    Lease,
    LimiterStats,
    Limits,
    Outcome,
    OutcomeKind,
    Settled,
    strictest,
)
from serve.ask.retry_budget import RetryBudget

__all__ = [
    "Lease",
    "Limiter",
    "LimiterStats",
    "Limits",
    "Outcome",
    "OutcomeKind",
    "Settled",
    "Step",
    "strictest",
]

LEASE_SLACK = 30.0
"""Seconds a lease outlives the longest its call may take: what a busy holder needs to settle."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided now. `refused`: ticket id -> seconds until it is worth another try.
    `retries`: who got a retry token. `wake_at`: when to step again, infinity: at the next call."""

    granted: tuple[Lease, ...] = ()
    refused: Mapping[str, float] = field(default_factory=dict)
    retries: tuple[str, ...] = ()
    wake_at: float = math.inf


class Limiter:
    """One provider's limits, shared by everybody who asks it."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._queues = Queues()
        self._retry_waiters: OrderedDict[str, None] = OrderedDict()
        self._calls = InFlight()
        self._idle_since: float | None = now
        self._allowance = Allowance(limits, now)
        self._concurrency = Concurrency(limits.max_concurrency)
        self._breaker = Breaker()
        self._budget = RetryBudget(now)
        self._granted = self._rate_limited = self._retries = self._expired = 0

    def set_limits(self, limits: Limits, now: float) -> None:
        """Go on under other limits; what is in flight stays."""
        if limits != self._limits:
            self._limits = limits
            self._allowance.set_limits(limits, now)
            self._concurrency.set_cap(limits.max_concurrency)

    def sent_before(self, requests: int, tokens: int, now: float) -> None:
        """So much was sent in the last minute under a limiter that is gone."""
        self._allowance.take(requests, tokens, now)

    def enqueue(
        self, ticket_id: str, cls: Class, tokens: int, call_seconds: float = CALL_SECONDS
    ) -> None:
        """Wait for a permit to send a request of about `tokens`, input and output together, that
        takes at most `call_seconds`. The id is the caller's, never used twice."""
        self._queues.join(Ticket(ticket_id, cls, tokens, call_seconds))

    def enqueue_retry(self, ticket_id: str) -> None:
        """Wait for a token of the retry budget."""
        self._retry_waiters[ticket_id] = None

    def lease(self, ticket_id: str) -> Lease | None:
        """What was granted to the ticket and is in use."""
        call = self._calls.get(ticket_id)
        return call.lease if call else None

    def withdraw(self, ticket_id: str, now: float) -> None:
        """Wait no longer; a lease granted meanwhile is settled as unsent. Unknown ids are fine."""
        if not self._leave(ticket_id):
            self.settle(ticket_id, Outcome("unsent"), now)

    def expire(self, ticket_id: str, now: float) -> None:
        """The holder is gone: it waits no longer, and what it may have sent counts as sent."""
        if not self._leave(ticket_id) and self._calls.release(ticket_id) is not None:
            self._expired += 1

    def settle(self, lease_id: str, outcome: Outcome, now: float) -> Settled:
        """The call under a lease has ended. An unknown or expired lease changes nothing."""
        in_use = self._counted_in_use()
        was_closed = self._breaker.state(now) == "closed"
        call = self._calls.release(lease_id)
        self._note_idleness(now)
        if call is None:
            return Settled(breaker_open=not was_closed)
        self._breaker.record(call.number, outcome.kind, self._granted, now)
        self._allowance.settle(call.number, call.lease, outcome, self._granted, now)
        if outcome.kind == "ok":
            self._budget.good(now)
        elif outcome.kind == "rate_limited":
            self._rate_limited += 1
        is_closed = self._breaker.state(now) == "closed"
        # What ends while the breaker is open or half-open is the breaker's to judge.
        if was_closed and outcome.kind == "ok":
            self._concurrency.good(in_use)
        elif was_closed and outcome.overloaded:
            self._concurrency.overloaded(call.number, self._granted)
        elif is_closed and not was_closed:
            self._concurrency.outage_over()
        return Settled(not is_closed or self._breaker.lived_through_opening(call.number))

    def step(self, now: float) -> Step:
        """Everything that can be decided now."""
        while (expiry := self._calls.next_expiry()) is not None and expiry[0] <= now:
            self.expire(expiry[1], now)
        self._note_idleness(now)
        granted = []
        ticket, at = self._next(now)
        while ticket is not None and at <= now:
            granted.append(self._grant(ticket, now))
            ticket, at = self._next(now)
        refused = {}
        if (admits_at := self._breaker.admits_at(now)) > now:
            refused = {each.id: admits_at - now for each in self._queues.drain("online")}
            ticket, at = self._next(now)
        retries = self._hand_out_retries(now)
        wake_at = min(at, self._calls.next_expires_at())
        if self._retry_waiters:
            wake_at = min(wake_at, self._budget.ready_at(now))
        return Step(tuple(granted), refused, retries, wake_at)

    @property
    def anybody_waits(self) -> bool:
        """For a permit or a retry token."""
        return bool(self._queues) or bool(self._retry_waiters)

    def stats(self, now: float) -> LimiterStats:
        """The limiter at this moment."""
        _, at = self._next(now)
        return LimiterStats(
            in_use=len(self._calls),
            peak=self._calls.peak,
            waiting={cls: self._queues.waiting(cls) for cls in CLASSES},
            concurrency=self._concurrency.limit,
            rpm=self._allowance.rpm,
            rpm_found=self._allowance.rpm_found,
            at_once=self._allowance.at_once(now),
            tpm=self._allowance.tpm,
            tokens_at_once=self._allowance.tokens_at_once(now),
            granted=self._granted,
            rate_limited=self._rate_limited,
            retries=self._retries,
            expired=self._expired,
            breaker=self._breaker.state(now),
            paused=max(0.0, self._allowance.paused_until - now),
            next_in=None if at == math.inf else at - now,
        )

    def _next(self, now: float) -> tuple[Ticket | None, float]:
        """Whose turn it is and when; infinity: nobody waits, or a permit has to come back first.

        Nobody overtakes who only waits for the buckets: a big request would never be sent.
        """
        if not self._queues:
            return None, math.inf
        permits = self._concurrency.limit
        if (
            len(self._calls) >= self._limits.max_concurrency
            or self._counted_in_use() >= permits
            or (ticket := self._queues.next(self._calls.of_class("slow"), permits)) is None
        ):
            return None, math.inf
        at = max(self._breaker.admits_at(now), self._allowance.ready_at(ticket.tokens, now))
        return ticket, at

    def _grant(self, ticket: Ticket, now: float) -> Lease:
        self._queues.serve(ticket)
        self._granted += 1
        expires_at = now + ticket.call_seconds + LEASE_SLACK
        lease = Lease(ticket.id, ticket.cls, ticket.tokens, now, expires_at)
        self._calls.add(lease, self._granted)
        self._allowance.granted(ticket.tokens, now)
        self._breaker.granted(now)
        return lease

    def _note_idleness(self, now: float) -> None:
        if not self._calls and not self._queues:
            if self._idle_since is None:
                self._idle_since = now
        elif self._idle_since is not None:
            self._allowance.busy_again(self._idle_since, now)
            self._idle_since = None

    def _leave(self, ticket_id: str) -> bool:
        """Out of the queue it waits in; False: it does not wait."""
        if ticket_id in self._retry_waiters:
            del self._retry_waiters[ticket_id]
            return True
        return self._queues.leave(ticket_id) is not None

    def _hand_out_retries(self, now: float) -> tuple[str, ...]:
        handed = []
        while self._retry_waiters and self._budget.ready_at(now) <= now:
            self._budget.take(now)
            handed.append(self._retry_waiters.popitem(last=False)[0])
        self._retries += len(handed)
        return tuple(handed)

    def _counted_in_use(self) -> int:
        """Calls in flight that count against the concurrency.

        Those that were in flight when the breaker opened do not: they may hang for a minute more,
        and must not keep the provider idle when it is back.
        """
        return self._calls.counted(self._breaker.lived_through_opening)
