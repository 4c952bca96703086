"""Asking: permit -> reservation -> attempt -> classify -> retry. The one owner of retries.

Invariant: every permit taken, and every reservation of money, is settled exactly once, whatever
happens (a reply, an error, a cancellation); nothing is sent without both; an error that leaves
`ask` is final for this request as it stands.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from serve.ask.billing import call_of, ended_by, is_counted
from serve.ask.capabilities import Capabilities, build_body
from serve.ask.contract import Class, Model, Reply, Request, Usage
from serve.ask.errors import (
    AskError,
    BreakerOpen,
    Misconfigured,
    RateLimited,
    Stopped,
    TimedOut,
    Unavailable,
    Unsupported,
)
from serve.ask.limiter import Lease, Outcome, OutcomeKind
from serve.ask.limiter_host import Permits
from serve.ask.settings import Provider
from serve.ask.spend import Ended
from serve.ask.spend_host import Spend

T = TypeVar("T")

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
    """Asks models of one provider, through the permits that all callers share.

    `model`: asked where a request names none. `spend`: who keeps it within its means; None: nobody
    keeps an account. `pauses`: seconds before each retry; their number is the number of retries.
    `heard`: when the provider last showed that it is alive, or until when it asked to be left alone
    (seconds of the monotonic clock).
    """

    provider: Provider
    model: str
    permits: Permits
    spend: Spend | None = None
    pauses: tuple[float, ...] = RETRY_SECONDS
    counts: CallCounts = field(default_factory=CallCounts)
    heard: float = field(default_factory=time.monotonic)
    unreachable: str | None = None
    """Why the last attempt found nobody at the URL; None if somebody answered it."""
    _capabilities: dict[str, Capabilities] = field(default_factory=dict)
    _attempt: Model = field(init=False)
    _random: random.Random = field(default_factory=random.Random)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._attempt = self.provider.connect()

    @property
    def capabilities(self) -> Capabilities:
        """What the asker's own model can do, as far as it was found out."""
        return self.capabilities_of(self.model)

    def capabilities_of(self, model: str) -> Capabilities:
        """What `model` can do, as far as it was found out."""
        mode = self.provider.json_mode
        return self._capabilities.get(model) or Capabilities(
            json="schema" if mode == "auto" else mode
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._attempt.aclose()

    def stop(self) -> None:
        """End every request that waits for its next attempt with Stopped; those on the wire end by
        themselves."""
        self._stopping.set()

    async def acquire(self, cls: Class, tokens: int) -> Lease:
        """Wait for the permit to send one request of about `tokens` (input and output)."""
        return await self.permits.acquire(cls, tokens)

    async def give_back(self, lease: Lease) -> None:
        """Return a permit that was not used."""
        await self.permits.settle(lease, Outcome("unsent"))

    async def ask(self, request: Request, lease: Lease) -> Reply:
        """Send `request` under `lease`; retried as its errors allow, under fresh permits.

        Raises an AskError: Unavailable after three retries, Stopped after `stop`, CapReached where
        an attempt may cost more than is left, anything else at once. A 429 is no attempt: it is
        sent again as often as it takes, at the pace of the limiter. Neither is a failure while the
        breaker is open, which says nothing about this request.
        """
        tries = 0
        while True:
            model = request.model or self.model
            capabilities = self.capabilities_of(model)
            body = build_body(request, model, capabilities, self.provider.extra_body)
            try:
                return await self._once(request, body, lease)
            except Unsupported as error:
                self._step_down(model, capabilities, error)
                lease = await self._acquire_again(lease.cls, lease.tokens)
                continue
            except (RateLimited, _FailedWhileOpen):
                pass
            except Unavailable as error:
                if tries == len(self.pauses):
                    raise
                await self._unless_stopped(self.permits.retry_token())
                pause = error.retry_after or self.pauses[tries]
                pause *= 1 + self._random.uniform(0, JITTER)
                await self._unless_stopped(asyncio.sleep(pause))
                tries += 1
                self.counts.retries += 1
            lease = await self._acquire_again("retry", lease.tokens)

    def _step_down(self, model: str, sent: Capabilities, error: Unsupported) -> None:
        """Turn a feature off that `model` refused. Raises Misconfigured where `extra_body` insists
        on it."""
        own = "response_format" if error.feature.startswith("json_") else error.feature
        if own in self.provider.extra_body:
            raise Misconfigured(
                f"extra_body sets {own}, which the provider refuses: {error.message}", error.status
            ) from error
        if self.capabilities_of(model) == sent:
            self._capabilities[model] = sent.without(error.feature)

    async def _acquire_again(self, cls: Class, tokens: int) -> Lease:
        return await self._unless_stopped(self.acquire(cls, tokens), self.give_back)

    async def _unless_stopped(
        self,
        waited: Coroutine[Any, Any, T],
        unused: Callable[[T], Awaitable[None]] | None = None,
    ) -> T:
        """What `waited` gives; Stopped once the asking is stopped, whichever comes first. What came
        too late, or to a caller who is gone, goes to `unused`."""
        taken = False
        wait = asyncio.ensure_future(waited)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({wait, stop}, return_when=asyncio.FIRST_COMPLETED)
            if wait.done() and not stop.done():
                taken = True
                return wait.result()
            raise Stopped("the asking was stopped before this request was sent again")
        finally:
            for task in (wait, stop):
                task.cancel()
            await asyncio.gather(wait, stop, return_exceptions=True)
            came = not wait.cancelled() and wait.exception() is None
            if came and not taken and unused is not None:
                await unused(wait.result())

    async def _once(self, request: Request, body: Mapping[str, Any], lease: Lease) -> Reply:
        """One attempt: its permit and what is reserved for it settled, its outcome counted."""
        ticket = uuid.uuid4().hex
        await self._reserve(ticket, request, body, lease)
        self.counts.requests += 1
        try:
            reply, headers = await self._attempt.complete(body, request.timeout)
        except AskError as error:
            outcome = Outcome(
                _kind(error),
                retry_after=_retry_after(error),
                headers=dict(error.headers),
                status=error.status,
            )
            self._count_error(outcome.kind)
            self._hear(error)
            _, settled = await asyncio.gather(
                self._account(ticket, ended_by(error), error.usage),
                self.permits.settle(lease, outcome),
            )
            if settled.breaker_open and isinstance(error, Unavailable):
                raise _FailedWhileOpen from error
            raise
        except BaseException:
            # Cancelled by us: it says nothing of the provider, who may answer and bill it.
            await asyncio.shield(
                asyncio.gather(
                    self._account(ticket, "unconfirmed"),
                    self.permits.settle(lease, Outcome("rejected")),
                )
            )
            raise
        self.heard = max(self.heard, time.monotonic())
        self.unreachable = None
        usage = reply.usage
        self.counts.tokens_in += usage.tokens_in
        self.counts.tokens_out += usage.tokens_out
        self.counts.tokens_cached += usage.cached
        used = usage.tokens_in + usage.tokens_out
        await asyncio.gather(
            self._account(ticket, "answered" if is_counted(reply) else "unconfirmed", usage),
            self.permits.settle(lease, Outcome("ok", tokens=used or None, headers=headers)),
        )
        return reply

    async def _reserve(
        self, ticket: str, request: Request, body: Mapping[str, Any], lease: Lease
    ) -> None:
        """Wait until the attempt may be paid for; its permit goes back where it may not."""
        if self.spend is None:
            return
        call = call_of(body, request, self.provider.context)
        try:
            await self._unless_stopped(self.spend.reserve(ticket, call))
        except BaseException:
            unused = asyncio.gather(self._account(ticket, "free"), self.give_back(lease))
            await asyncio.shield(unused)
            raise

    async def _account(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        if self.spend is not None:
            await self.spend.settle(ticket, ended, usage)

    def _hear(self, error: AskError) -> None:
        """A refusal shows life, and so does a request to wait, until the wait is over."""
        wait = _retry_after(error)
        nobody = error.status is None and type(error) is Unavailable
        self.unreachable = error.message if nobody else None
        refused = error.status is not None and error.status < 500 and error.status != 429
        if refused or wait is not None:
            self.heard = max(self.heard, time.monotonic() + (wait or 0.0))

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
