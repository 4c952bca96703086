"""The cluster's own models as the gateway asks them: no permit, no key, and one queue, their own.

Invariant: nothing is asked again once its answer has begun, and at most once more where the process
that was answering ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from serve.ask.contract import Usage
from serve.ask.errors import AskError, RateLimited, Refused, Unavailable
from serve.ask.spend import cost_of
from serve.gateway.contract import Answer, Answered, Call, Stream, Target, Whole
from serve.gateway.local_stream import LocalEvents
from serve.gateway.readiness import Readiness
from serve.gateway.request import output_limit, wants_usage
from serve.gateway.terms import Terms
from serve.gateway.trial import Trial, Usual
from serve.gateway.whole import read_whole
from serve.models.contract import ReadyCalls
from serve.models.errors import BUSY_SECONDS, ModelBusy, ModelLost, ModelNotLoaded
from serve.models.tenant import TENANT

TRIES: Final = 2
"""Processes that are asked in turn where one of them ends."""


class LocalModels:
    """Asks the models of one cluster. Belongs to one loop."""

    def __init__(
        self,
        calls: ReadyCalls,
        terms: Mapping[Target, Terms],
        clock: Callable[[], float],
        pooled: Collection[str] = (),
    ) -> None:
        """`pooled`: models that share their processes with others."""
        self._calls = calls
        self._terms = terms
        self._clock = clock
        self._usual = Usual()
        self._readiness = Readiness(calls, pooled, clock)

    def needed(self, call: Call, target: Target) -> float:
        """Seconds that answers to such a call usually take; 0 where that is not known."""
        return self._usual.seconds(call, target.model)

    async def room_in(self) -> float | None:
        """Seconds until there is room in a queue."""
        return BUSY_SECONDS

    async def aclose(self) -> None:
        """Wait for no model any more. Ray Serve closes its own connections."""
        await self._readiness.aclose()

    async def ask(self, trial: Trial, target: Target, others: bool) -> Answer:
        """The answer of `target`. Raises an AskError."""
        self._check(trial.call, target)
        trial.target, trial.phase = target, "provider"
        if others:
            await self._readiness.wait(target.model, trial.deadline)
        for left in reversed(range(TRIES)):
            try:
                return await self._attempt(trial, target)
            except ModelLost as error:
                self._readiness.lost(target.model)
                trial.failure = error
                if not left or others:
                    raise
            except (RateLimited, Unavailable) as error:
                if isinstance(error, ModelNotLoaded):
                    self._readiness.lost(target.model)
                raise _busy(error) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def _check(self, call: Call, target: Target) -> None:
        """Raises Refused for what a model of this kind never answers."""
        writes = self._terms[target].writes
        if writes == (call.endpoint == "chat/completions"):
            return
        refused = Refused(f"{target} was asked for {call.endpoint}", 400)
        does = "writes: ask it at /v1/chat/completions" if writes else "gives vectors"
        refused.said = f"The model {target} {does}. It is not to be asked at /v1/{call.endpoint}."
        refused.param, refused.code = "model", "model_not_supported"
        raise refused

    async def _attempt(self, trial: Trial, target: Target) -> Answer:
        about = trial.about
        about.attempts += 1
        trial.asked_at = self._clock()
        about.sent = trial.asked_at - trial.since
        about.written = True
        body = _body(trial.call, target.model)
        seconds = trial.deadline - trial.asked_at
        if trial.call.stream:
            return await self._stream(trial, target, body, seconds)
        content = await self._calls.answer(target.model, trial.call.endpoint, body, seconds)
        read = read_whole(content, trial.call.endpoint)
        if read is None:
            raise Unavailable(f"{target} gave what is no answer", status=200)
        about.first_byte = about.last_byte = self._clock() - trial.since
        about.finish_reason = read.finish_reason
        self._usual.note(trial.call, target.model, self._clock() - trial.asked_at)
        self._account(about, target, read.usage)
        return Whole(content, about)

    async def _stream(
        self, trial: Trial, target: Target, body: Mapping[str, Any], seconds: float
    ) -> Stream:
        chunks = self._calls.stream(target.model, trial.call.endpoint, body, seconds)

        def ended(usage: Usage | None) -> None:
            self._account(trial.about, target, usage)

        events = LocalEvents(
            chunks, trial, target, wants_usage(trial.call.body), self._clock, ended
        )
        await events.open()
        self._usual.note(trial.call, target.model, self._clock() - trial.asked_at)
        trial.about.target = target
        return Stream(events, trial.about)

    def _account(self, about: Answered, target: Target, usage: Usage | None) -> None:
        """An answer has ended: who gave it, and what it cost."""
        about.target, about.usage = target, usage
        terms = self._terms[target]
        if terms.free:
            about.cost = Decimal(0)
        elif usage is not None and terms.prices is not None:
            about.cost, about.currency = cost_of(usage, terms.prices), terms.prices.currency


def _body(call: Call, model: str) -> dict[str, Any]:
    """What is sent for `call`: as the client sent it, with the limit of its task where it names
    none itself, in the name of its tenant, and asked to count tokens."""
    body = {**call.body, "model": model}
    if call.endpoint == "embeddings":
        return body
    body[TENANT] = call.caller.tenant
    if call.task is not None and output_limit(call.body) is None:
        body["max_completion_tokens"] = call.task.max_tokens
    if call.stream:
        given = call.body.get("stream_options")
        options = given if isinstance(given, Mapping) else {}
        body["stream_options"] = {**options, "include_usage": True}
    return body


def _busy(error: RateLimited | Unavailable) -> AskError:
    """`error`, as a full queue where it says when to come again."""
    if isinstance(error, ModelNotLoaded):
        return error
    if isinstance(error, RateLimited) or (error.status == 503 and error.retry_after is not None):
        busy = ModelBusy(error.message, 503, error.retry_after or BUSY_SECONDS)
        busy.said = error.said
        return busy
    return error
