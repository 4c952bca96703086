"""The most that a request may take, before it is asked. Pure.

Invariant: no text costs more than is said here, however it is written and wherever in the body it
stands: a token has at least a byte. Where a request, its task or its provider bounds the answer, so
does the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from serve.ask.contract import Usage
from serve.ask.settings import Prices
from serve.ask.spend import cost_of
from serve.gateway.contract import Call, Target
from serve.gateway.request import output_limit
from serve.gateway.terms import Terms

USUAL_OUTPUT = 1_000
"""Tokens that an answer without any limit is taken to have, until the provider has counted it."""
_TEXTS = ("text", "refusal")
"""Parts of a message that have no more tokens than bytes; the others only name what is read."""


def most_tokens(call: Call) -> int:
    """Input and output tokens that are held for a call against its key's rate."""
    if call.endpoint == "embeddings":
        return call.estimate
    limit = output_limit(call.body)
    if limit is None:
        limit = call.task.max_tokens if call.task else USUAL_OUTPUT
    return call.estimate + limit


class Costs:
    """The most that a call may cost, by what providers charge."""

    def __init__(self, terms: Mapping[Target, Terms]) -> None:
        self._terms = terms
        self._prices = {target: _dearest(each) for target, each in terms.items()}

    def most(self, call: Call, currency: str) -> Decimal | None:
        """In `currency`, at the dearest of its targets; None: nobody knows."""
        costs = []
        size = len(orjson.dumps(call.body))
        media = call.endpoint == "chat/completions" and _has_media(call.body)
        for target in call.targets:
            terms, prices = self._terms[target], self._prices[target]
            if terms.free:
                costs.append(Decimal(0))
                continue
            if prices is None or prices.currency != currency:
                return None
            tokens_in = _most_input(call, terms, size, media)
            output = 0
            if call.endpoint == "chat/completions":
                output = output_limit(call.body) or _open_output(call, terms)
            costs.append(cost_of(Usage(tokens_in, output), prices))
        return max(costs, default=None)


def _dearest(terms: Terms) -> Prices | None:
    """What the model charges where nothing is cached, or all, whichever is the dearer."""
    if terms.prices is None:
        return None
    # A configuration may make cached input the dearer one.
    price = max(terms.prices.input, terms.prices.cached or Decimal(0))
    return terms.prices.model_copy(update={"input": price, "cached": None})


def _most_input(call: Call, terms: Terms, size: int, media: bool) -> int:
    """Input tokens of a body of `size` bytes. What is longer than the context cannot be asked, and
    costs nothing; but a context that nobody wrote down bounds nothing."""
    size += terms.added
    if call.endpoint == "embeddings":
        return size  # each input may fill the context
    if media:
        return terms.context if terms.bounded else max(size, terms.context)
    return min(size, terms.context) if terms.bounded else size


def _has_media(body: Mapping[str, Any]) -> bool:
    """Whether a chat holds pictures, sound, files, or what else is no text."""
    for message in body["messages"]:
        if message.get("audio"):
            return True
        content = message.get("content")
        for part in content if isinstance(content, list) else (content,):
            if isinstance(part, dict) and part.get("type") not in _TEXTS:
                return True
    return False


def _open_output(call: Call, terms: Terms) -> int:
    """Output tokens of a call that does not say how many it takes, all its choices together."""
    each = call.task.max_tokens if call.task else terms.max_output or terms.context
    return each * int(call.body.get("n") or 1)
