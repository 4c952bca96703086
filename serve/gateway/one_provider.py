"""One provider as the gateway asks it: permit -> attempt -> classify -> retry.

Invariant: every permit is settled exactly once; nothing is sent again once the answer to it has
begun.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal

import orjson

from serve.ask.contract import Usage
from serve.ask.errors import AskError, RateLimited, TimedOut, Unavailable, Unsupported
from serve.ask.limiter_host import Permits
from serve.ask.permit import Lease, Outcome, OutcomeKind
from serve.ask.price_table import prices_of
from serve.ask.ratelimit_headers import PREFIX
from serve.ask.settings import Prices, Provider
from serve.ask.spend import cost_of
from serve.gateway.attempt_stream import LiveEvents
from serve.gateway.chunks import chunk_of, cut
from serve.gateway.connection import Connection, Response
from serve.gateway.contract import Answer, Answered, Call, Stream, Target, Whole
from serve.gateway.outgoing import Outgoing
from serve.gateway.request import wants_usage
from serve.gateway.whole import read_whole

PAUSES: Final = (0.25, 0.5, 1.0)
"""Seconds before each retry of a request, with up to JITTER of them more; a client waits, so they
are shorter than those of the job."""
JITTER: Final = 0.25
TOKEN_SECONDS: Final = 1.0
"""How long a token of the retry budget is waited for where somebody else can be asked."""
STREAM_TYPES: Final = ("text/event-stream", "application/octet-stream")
"""The second is what aiohttp calls an answer that names no type."""

Phase = Literal["permit", "provider", "retry"]


@dataclass(slots=True)
class Trial:
    """One request on its way. `since`, `deadline`: seconds of the clock; `phase`: what it waits
    for, and `failure` what went wrong before, for whoever has to say why it took too long."""

    call: Call
    since: float
    deadline: float
    about: Answered = field(default_factory=Answered)
    phase: Phase = "permit"
    target: Target | None = None
    failure: AskError | None = None
    breaker_open: bool = False
    late: Callable[[], bool] = lambda: False


class OneProvider:
    """Asks one provider. Belongs to one loop."""

    def __init__(self, provider: Provider, permits: Permits, clock: Callable[[], float]) -> None:
        """Raises Misconfigured where the environment lacks the provider's key."""
        self.permits = permits
        self._provider = provider
        self._clock = clock
        self._connection = Connection(provider)
        self._prices: dict[str, Prices | None] = {}
        self._outgoing = Outgoing(provider)
        self._paused_until = 0.0
        self._random = random.Random()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def ask(self, trial: Trial, target: Target, others: bool) -> Answer:
        """The answer of `target`, retried as its errors allow. `others`: somebody else can be asked
        instead, so that a closed door is not knocked at again. Raises an AskError."""
        trial.target = target
        tries = 0
        while True:
            lease = await self._permit(trial, target)
            try:
                return await self._once(trial, target, lease)
            except Unsupported as error:
                if not self._outgoing.step_down(trial.call, target.model, error):
                    raise
            except RateLimited as error:
                trial.failure = error
                self._heed(error.retry_after)
            except Unavailable as error:
                self._heed(error.retry_after)
                if error.status == 200 or tries == len(PAUSES) or (others and not error.sent):
                    raise
                trial.phase, trial.failure = "retry", error
                pause = PAUSES[tries] if error.retry_after is None else error.retry_after
                # While it is open, the breaker says whether to go on, and at once.
                if not trial.breaker_open and not await self._pause(trial, pause, others):
                    raise
                tries += 1

    async def _permit(self, trial: Trial, target: Target) -> Lease:
        """Raises BreakerOpen; RateLimited where the provider wants to be left alone for longer than
        the request may take."""
        asked_at = self._in_time(trial)
        trial.phase = "permit"
        tokens = self._outgoing.tokens(trial.call, target.model)
        lease = await self.permits.acquire("online", tokens, trial.deadline - asked_at)
        trial.about.queued += self._clock() - asked_at
        trial.phase = "provider"
        return lease

    async def _pause(self, trial: Trial, seconds: float, others: bool) -> bool:
        """Wait until the failed request may be sent again; False where it may not in time."""
        seconds *= 1 + self._random.uniform(0, JITTER)
        if self._clock() + seconds >= trial.deadline:
            return False
        try:
            async with asyncio.timeout(TOKEN_SECONDS if others else None):
                await self.permits.retry_token()
        except TimeoutError:
            return False
        await asyncio.sleep(seconds)
        return True

    def _heed(self, seconds: float | None) -> None:
        """The provider asked to be left alone for so long: the limiter sees to that, and who has
        less time need not wait in vain."""
        if seconds is not None:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _in_time(self, trial: Trial) -> float:
        """Now. Raises RateLimited where no permit can come in time."""
        now = self._clock()
        if self._paused_until > trial.deadline:
            wait = self._paused_until - now
            raise RateLimited(f"asked to wait {wait:.0f} s", retry_after=wait)
        return now

    async def _once(self, trial: Trial, target: Target, lease: Lease) -> Answer:
        """One attempt under `lease`, which is settled when it has failed, or its answer ends."""
        trial.about.attempts += 1
        body = self._outgoing.body(trial.call, target.model)
        response: Response | None = None
        trial.about.sent = self._clock() - trial.since
        try:
            response = await self._connection.post(trial.call.endpoint, orjson.dumps(body))
            if response.status != 200:
                content = await self._connection.read(response)
                raise self._connection.wire.refusal(
                    response.status, response.headers, content, body
                )
            if trial.call.stream and response.content_type in STREAM_TYPES:
                return await self._stream(trial, target, lease, response, body)
            return await self._whole(trial, target, lease, response, body)
        except AskError as error:
            if response is not None:
                response.close()
            settled = await self.permits.settle(lease, _outcome(error, response))
            trial.breaker_open = settled.breaker_open
            raise
        except BaseException:
            if response is not None:
                response.close()
            kind: OutcomeKind = "timed_out" if trial.late() else "rejected"
            self.permits.settle_soon(lease, Outcome(kind))
            raise

    async def _whole(
        self,
        trial: Trial,
        target: Target,
        lease: Lease,
        response: Response,
        body: Mapping[str, Any],
    ) -> Answer:
        about, wire = trial.about, self._connection.wire
        first_byte = self._clock() - trial.since
        try:
            content = await self._connection.read(response)
        except Unavailable as error:
            error.status = 200  # it had begun
            raise
        read = read_whole(content, trial.call.endpoint)
        if read is None:
            chunk = chunk_of(content)
            if chunk is not None and "error" in chunk:
                raise wire.refusal(200, response.headers, content, body)
            raise wire.garbage(content, trial.call.endpoint)
        about.first_byte, about.last_byte = first_byte, self._clock() - trial.since
        about.finish_reason = read.finish_reason
        answer: Answer = Whole(content, about)
        if trial.call.stream:
            # The provider streams nothing: what it sent at once is sent on as a stream.
            try:
                answer = Stream(_Given(cut(content, wants_usage(trial.call.body))), about)
            except ValueError as error:
                raise wire.garbage(content, trial.call.endpoint) from error
        self._account(trial, target, lease, response, "ok", read.usage)
        return answer

    async def _stream(
        self,
        trial: Trial,
        target: Target,
        lease: Lease,
        response: Response,
        body: Mapping[str, Any],
    ) -> Stream:
        wire = self._connection.wire

        def ended(kind: OutcomeKind, usage: Usage | None) -> None:
            self._account(trial, target, lease, response, kind, usage)

        events = LiveEvents(
            response,
            wire,
            target,
            trial.about,
            wants_usage(trial.call.body),
            lambda: self._clock() - trial.since,
            ended,
        )
        first = await events.open()
        chunk = chunk_of(first)
        if chunk is None:
            raise wire.garbage(first, "stream of a chat completion")
        if "error" in chunk and not chunk.get("choices"):
            raise wire.refusal(200, response.headers, first, body)
        events.start(trial.deadline - self._clock())
        trial.about.target = target
        return Stream(events, trial.about)

    def _account(
        self,
        trial: Trial,
        target: Target,
        lease: Lease,
        response: Response,
        kind: OutcomeKind,
        usage: Usage | None,
    ) -> None:
        """An answer has ended: who gave it, what it cost, and its permit back."""
        about, model = trial.about, target.model
        about.target, about.usage = target, usage
        tokens = None
        if usage is not None:
            tokens = usage.tokens_in + usage.tokens_out
            about.cost, about.currency = self._cost(model, usage)
            if kind == "ok" and trial.call.endpoint != "embeddings":
                self._outgoing.learn(model, usage.tokens_out)
        outcome = Outcome(kind, tokens=tokens, headers=_limit_headers(response), status=200)
        self.permits.settle_soon(lease, outcome)

    def _cost(self, model: str, usage: Usage) -> tuple[Decimal | None, str | None]:
        if model not in self._prices:
            known = prices_of(self._provider, model)
            self._prices[model] = known.prices if known else None
        prices = self._prices[model]
        return (cost_of(usage, prices), prices.currency) if prices else (None, None)


class _Given:
    """Events that are there already."""

    def __init__(self, events: list[bytes]) -> None:
        self._events = iter(events)

    def __aiter__(self) -> _Given:
        return self

    async def __anext__(self) -> bytes:
        for each in self._events:
            return each
        raise StopAsyncIteration


def _limit_headers(response: Response | None) -> dict[str, str]:
    if response is None:
        return {}
    return {
        lowered: value
        for name, value in response.headers.items()
        if (lowered := name.lower()).startswith(PREFIX)
    }


def _outcome(error: AskError, response: Response | None) -> Outcome:
    kind: OutcomeKind = "rejected"
    wait = None
    if isinstance(error, RateLimited | Unavailable):
        wait = error.retry_after
        kind = "rate_limited" if isinstance(error, RateLimited) else "unavailable"
    if isinstance(error, TimedOut):
        kind = "timed_out"
    return Outcome(kind, retry_after=wait, headers=_limit_headers(response), status=error.status)
