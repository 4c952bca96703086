"""A few tiny requests that find out what a provider takes, before a run depends on it.

Invariant: at most `MOST_REQUESTS` requests to the model (and as many more as the caller asks to be
sent together), one after the other, none repeated after a refusal of any other kind than of a
feature: a check must not use up what it is to check.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from serve.ask.attempt import Attempt
from serve.ask.capabilities import Capabilities, build_body
from serve.ask.contract import Reply, Request
from serve.ask.errors import AskError, Misconfigured, RateLimited, Unsupported
from serve.ask.model_list import ListedModel, list_models
from serve.ask.ratelimit_headers import Quota, quota
from serve.ask.settings import Provider, api_key

MOST_REQUESTS = 6
"""One, and one more for each feature that can be refused."""
OUTPUT_TOKENS = 400
"""Room for a model that thinks before it answers; others use a dozen."""
SECONDS = 60.0
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}, "word": {"type": "string"}},
    "required": ["ready", "word"],
    "additionalProperties": False,
}
_REQUEST = Request(
    system='This is a test of the connection. Answer in JSON: "ready" is true, "word" is the word.',
    user='{"word":"fupan"}',
    max_output=OUTPUT_TOKENS,
    estimate_in=60,
    timeout=SECONDS,
    schema=_SCHEMA,
    schema_name="ready",
)


@dataclass(slots=True)
class Together:
    """What became of requests that were sent at once. `retry_after`: seconds, the longest told."""

    sent: int = 0
    answered: int = 0
    rate_limited: int = 0
    failed: int = 0
    retry_after: float | None = None
    slowest: float = 0.0


@dataclass(slots=True)
class Probe:
    """What was found. `requests`, `tokens`: what it cost. `error`: why there was no answer; all
    that follows it is then None or as it was assumed. `obeys`: whether the answer was the JSON that
    was asked for. `ahead`: seconds by which the provider's clock is ahead of ours, within one."""

    models: list[ListedModel] | None = None
    requests: int = 0
    tokens: int = 0
    error: AskError | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    refused: list[str] = field(default_factory=list)
    reply: Reply | None = None
    obeys: bool | None = None
    per_request: Quota | None = None
    per_token: Quota | None = None
    ahead: float | None = None
    together: Together | None = None


async def probe(provider: Provider, model: str, together: int = 0) -> Probe:
    """Ask `provider` for its models and for one tiny answer of `model`, without each feature that
    it refuses; then for `together` more answers at once. Raises Misconfigured where the key cannot
    be sent; every other failure is in the result."""
    key = api_key(provider)
    mode = provider.json_mode
    found = Probe(capabilities=Capabilities(json="schema" if mode == "auto" else mode))
    found.models = await list_models(provider.base_url, key)
    attempt = Attempt(provider.base_url, key, max_connections=max(1, together))
    try:
        await _one(attempt, provider, model, found)
        if together and found.error is None:
            found.together = await _at_once(attempt, provider, model, found, together)
    finally:
        await attempt.aclose()
    return found


async def _one(attempt: Attempt, provider: Provider, model: str, found: Probe) -> None:
    while found.requests < MOST_REQUESTS:
        body = build_body(_REQUEST, model, found.capabilities, provider.extra_body)
        found.requests += 1
        began = time.time()
        try:
            reply, headers = await attempt.complete(body, SECONDS)
        except Unsupported as error:
            _look_at(found, error.headers, began)
            own = "response_format" if error.feature.startswith("json_") else error.feature
            if own in provider.extra_body:
                found.error = Misconfigured(
                    f"extra_body sets {own}, which the provider refuses: {error.message}",
                    error.status,
                )
                return
            found.refused.append(error.feature)
            found.capabilities = found.capabilities.without(error.feature)
            continue
        except AskError as error:
            _look_at(found, error.headers, began)
            found.error = error
            return
        _look_at(found, headers, began)
        found.reply = reply
        found.tokens += reply.usage.tokens_in + reply.usage.tokens_out
        found.obeys = _fits(reply.text)
        return


async def _at_once(
    attempt: Attempt, provider: Provider, model: str, found: Probe, number: int
) -> Together:
    body = build_body(_REQUEST, model, found.capabilities, provider.extra_body)
    seen = Together(sent=number)

    async def one() -> None:
        try:
            reply, headers = await attempt.complete(body, SECONDS)
        except RateLimited as error:
            seen.rate_limited += 1
            seen.retry_after = max(
                filter(None, (seen.retry_after, error.retry_after)), default=None
            )
        except AskError:
            seen.failed += 1
        else:
            seen.answered += 1
            seen.slowest = max(seen.slowest, reply.seconds)
            found.tokens += reply.usage.tokens_in + reply.usage.tokens_out
            _look_at(found, headers, None)

    await asyncio.gather(*(one() for _ in range(number)))
    found.requests += number
    return seen


def _look_at(found: Probe, headers: Mapping[str, str], began: float | None) -> None:
    """Limits and clock, from the headers of an answer to what was sent at `began`."""
    for name, what in (("per_request", "requests"), ("per_token", "tokens")):
        told = quota(headers, what)
        if told.limit is not None or told.remaining is not None:
            setattr(found, name, told)
    if began is None:
        return
    try:
        # The header has whole seconds: half of one is lost on average.
        theirs = parsedate_to_datetime(headers.get("date", "")).timestamp() + 0.5
    except (TypeError, ValueError):
        return
    found.ahead = theirs - (began + time.time()) / 2


def _fits(text: str) -> bool:
    """Whether the answer is what the schema describes and nothing else."""
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return (
        isinstance(answer, dict)
        and set(answer) == set(_SCHEMA["properties"])
        and isinstance(answer["ready"], bool)
        and isinstance(answer["word"], str)
    )
