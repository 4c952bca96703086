"""Asking: permit -> attempt -> classify -> retry. The one owner of retries.

Invariant: every permit taken is settled exactly once, whatever happens (a reply, an error, a
cancellation); an error that leaves `ask` is final for this request as it stands.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from serve.ask.attempt import Attempt
from serve.ask.capabilities import Capabilities, build_body
from serve.ask.contract import Class, Reply, Request
from serve.ask.errors import (
    AskError,
    BreakerOpen,
    RateLimited,
    TimedOut,
    Unavailable,
    Unsupported,
)
from serve.ask.limiter import Lease, Outcome, OutcomeKind
from serve.ask.limiter_host import Permits
from serve.ask.settings import Provider, api_key

RETRY_SECONDS = (1.0, 2.0, 4.0)
"""Pauses before the second, third and fourth attempt of a request, each with up to a quarter of
jitter so that requests that failed together do not come back together."""
JITTER = 0.25


@dataclass(slots=True)
class CallCounts:
    """What was sent and what it cost. Counters only grow; `requests` counts HTTP requests."""

    requests: int = 0
    retries: int = 0
    rate_limited: int = 0
    failed: int = 0
    timed_out: int = 0
    rejected: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    def __add__(self, other: CallCounts) -> CallCounts:
        return CallCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(slots=True)
class Asker:
    """Asks one model of one provider, through the permits that all callers share.

    `pauses`: seconds before each retry; their number is the number of retries.
    """

    provider: Provider
    model: str
    permits: Permits
    pauses: tuple[float, ...] = RETRY_SECONDS
    counts: CallCounts = field(default_factory=CallCounts)
    capabilities: Capabilities = field(init=False)
    _attempt: Attempt = field(init=False)
    _random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        mode = self.provider.json_mode
        self.capabilities = Capabilities(json="schema" if mode == "auto" else mode)
        self._attempt = Attempt(
            self.provider.base_url,
            api_key(self.provider),
            max_connections=self.provider.limits.max_concurrency,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._attempt.aclose()

    async def acquire(self, cls: Class, tokens: int) -> Lease:
        """Wait for the permit to send one request of about `tokens` (input and output)."""
        return await self.permits.acquire(cls, tokens)

    async def give_back(self, lease: Lease) -> None:
        """Return a permit that was not used."""
        await self.permits.settle(lease, Outcome("unsent"))

    async def ask(self, request: Request, lease: Lease) -> Reply:
        """Send `request` under `lease`; retried as its errors allow, under fresh permits.

        Raises an AskError: Unavailable after three retries, anything else at once. A 429 is no
        attempt: it is sent again as often as it takes, at the pace of the limiter. Neither is a
        failure while the breaker is open, which says nothing about this request.
        """
        tries = 0
        while True:
            capabilities = self.capabilities
            body = build_body(request, self.model, capabilities, self.provider.extra_body)
            try:
                return await self._once(body, request.timeout, lease)
            except Unsupported as error:
                if self.capabilities == capabilities:
                    self.capabilities = capabilities.without(error.feature)
                lease = await self.acquire(lease.cls, lease.tokens)
            except RateLimited:
                lease = await self.acquire("retry", lease.tokens)
            except _FailedWhileOpen:
                lease = await self.acquire("retry", lease.tokens)
            except Unavailable as error:
                if tries == len(self.pauses):
                    raise
                await self.permits.retry_token()
                pause = error.retry_after or self.pauses[tries]
                await asyncio.sleep(pause * (1 + self._random.uniform(0, JITTER)))
                tries += 1
                self.counts.retries += 1
                lease = await self.acquire("retry", lease.tokens)

    async def _once(self, body: Mapping[str, object], seconds: float, lease: Lease) -> Reply:
        """One attempt, its permit settled and its outcome counted."""
        self.counts.requests += 1
        try:
            reply, headers = await self._attempt.complete(body, seconds)
        except AskError as error:
            outcome = Outcome(
                _kind(error),
                retry_after=_retry_after(error),
                headers=dict(error.headers),
                status=error.status,
            )
            self._count_error(outcome.kind)
            settled = await self.permits.settle(lease, outcome)
            if settled.breaker_open and isinstance(error, Unavailable):
                raise _FailedWhileOpen from error
            raise
        except BaseException:
            # Cancelled by us: it says nothing of the provider.
            await asyncio.shield(self.permits.settle(lease, Outcome("rejected")))
            raise
        usage = reply.usage
        self.counts.tokens_in += usage.tokens_in
        self.counts.tokens_out += usage.tokens_out
        self.counts.tokens_cached += usage.cached
        used = usage.tokens_in + usage.tokens_out
        await self.permits.settle(lease, Outcome("ok", tokens=used or None, headers=headers))
        return reply

    def _count_error(self, kind: OutcomeKind) -> None:
        if kind == "rate_limited":
            self.counts.rate_limited += 1
        elif kind == "timed_out":
            self.counts.timed_out += 1
        elif kind == "unavailable":
            self.counts.failed += 1
        else:
            self.counts.rejected += 1


class _FailedWhileOpen(Exception):
    """A failure that says nothing about the request: the breaker was open when it came."""


def _kind(error: AskError) -> OutcomeKind:
    if isinstance(error, RateLimited):
        return "rate_limited"
    if isinstance(error, TimedOut):
        return "timed_out"
    if isinstance(error, Unavailable):
        return "unavailable"
    return "rejected"


def _retry_after(error: AskError) -> float | None:
    if isinstance(error, RateLimited | Unavailable | BreakerOpen):
        return error.retry_after
    return None
