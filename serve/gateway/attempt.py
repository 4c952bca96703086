"""One attempt at a provider: a body goes out, and an answer or an error comes back.

Invariant: every permit is settled exactly once, when its attempt has failed or its answer has
ended, with what that says of the provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from serve.ask.contract import Usage
from serve.ask.errors import AskError, RateLimited, TimedOut, Unavailable, Unsupported
from serve.ask.permit import Lease, Outcome, OutcomeKind
from serve.ask.price_table import prices_of
from serve.ask.ratelimit_headers import PREFIX
from serve.ask.settings import Prices, Provider
from serve.ask.spend import cost_of
from serve.gateway.attempt_stream import LiveEvents
from serve.gateway.connection import Connection, Response
from serve.gateway.contract import Answer, Stream, Target, Whole
from serve.gateway.gate import Gate
from serve.gateway.listed import streamed
from serve.gateway.outgoing import Outgoing
from serve.gateway.piece import problem
from serve.gateway.request import wants_usage
from serve.gateway.trial import Trial, Usual
from serve.gateway.whole import read_whole

STREAM_TYPES: Final = ("text/event-stream", "application/octet-stream")
"""The second is what aiohttp calls an answer that names no type."""


class Attempts:
    """Makes the attempts at one provider, one by one. Belongs to one loop."""

    def __init__(
        self,
        provider: Provider,
        gate: Gate,
        outgoing: Outgoing,
        usual: Usual,
        clock: Callable[[], float],
    ) -> None:
        """Raises Misconfigured where the environment lacks the provider's key."""
        self._provider = provider
        self._gate = gate
        self._outgoing = outgoing
        self._usual = usual
        self._clock = clock
        self._connection = Connection(provider)
        self._prices: dict[str, Prices | None] = {}

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def one(self, trial: Trial, target: Target, lease: Lease) -> Answer:
        """One attempt under `lease`. Raises an AskError, which the `trial` is told of."""
        about = trial.about
        about.attempts += 1
        body = self._outgoing.body(trial.call, target.model)
        response: Response | None = None
        trial.asked_at = self._clock()
        about.sent = trial.asked_at - trial.since
        written = False

        def on_write() -> None:
            nonlocal written
            written = about.written = True

        try:
            response = await self._connection.post(
                trial.call.endpoint, orjson.dumps(body), on_write
            )
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
            # Should the request's time be over while the permit is given back, this is what went
            # wrong. (What is Unsupported may be of our own adding, and is left out at once.)
            if not isinstance(error, Unsupported):
                trial.phase, trial.failure = "retry", error
            trial.breaker_open = await self._gate.leave(lease, _outcome(error, response))
            raise
        except BaseException:
            if response is not None:
                response.close()
            kind: OutcomeKind = "rejected" if written else "unsent"
            if trial.late():
                now = self._clock()
                if trial.had_its_time(now):
                    kind = "timed_out"
                else:
                    self._usual.note_cut_off(trial.call, target.model, now - trial.asked_at)
            self._gate.leave_soon(lease, Outcome(kind))
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
            raise problem(content, wire, response.headers, body, trial.call.endpoint)
        about.first_byte, about.last_byte = first_byte, self._clock() - trial.since
        about.finish_reason = read.finish_reason
        answer: Answer = Whole(content, about)
        if trial.call.stream:
            # The provider streams nothing: what it sent at once is sent on as a stream.
            try:
                answer = streamed(content, trial.call, about)
            except ValueError as error:
                raise wire.garbage(content, trial.call.endpoint) from error
        self._usual.note(trial.call, target.model, self._clock() - trial.asked_at)
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
        def ended(kind: OutcomeKind, usage: Usage | None) -> None:
            self._account(trial, target, lease, response, kind, usage)

        events = LiveEvents(
            response,
            self._connection.wire,
            trial,
            target,
            wants_usage(trial.call.body),
            self._clock,
            ended,
        )
        await events.open(body)
        self._usual.note(trial.call, target.model, self._clock() - trial.asked_at)
        events.start()
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
        self._gate.leave_soon(lease, outcome)

    def _cost(self, model: str, usage: Usage) -> tuple[Decimal | None, str | None]:
        if model not in self._prices:
            known = prices_of(self._provider, model)
            self._prices[model] = known.prices if known else None
        prices = self._prices[model]
        return (cost_of(usage, prices), prices.currency) if prices else (None, None)


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
