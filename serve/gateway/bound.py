"""The most that a request may take, before it is asked. Pure.

Invariant: where a request, its task or its provider bounds the answer, so does the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from serve.ask.contract import Usage
from serve.ask.price_table import prices_of
from serve.ask.settings import Prices, Provider
from serve.ask.spend import SAFETY, cost_of
from serve.gateway.contract import Call, Target
from serve.gateway.request import output_limit

USUAL_OUTPUT = 1_000
"""Tokens that an answer without any limit is taken to have, until the provider has counted it."""


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

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        self._prices = {
            Target(name, model): _dearest(provider, model)
            for name, provider in providers.items()
            for model in provider.models
        }

    def most(self, call: Call, currency: str) -> Decimal | None:
        """In `currency`, at the dearest of its targets; None: nobody knows."""
        costs = []
        for target in call.targets:
            prices = self._prices[target]
            if prices is None or prices.currency != currency:
                return None
            costs.append(self._most_at(call, target, prices))
        return max(costs, default=None)

    def _most_at(self, call: Call, target: Target, prices: Prices) -> Decimal:
        # Nobody has counted with the provider's own tokenizer yet.
        tokens_in = int(call.estimate * SAFETY)
        output = 0
        if call.endpoint == "chat/completions":
            output = output_limit(call.body) or _open_output(call, self._providers[target.provider])
        return cost_of(Usage(tokens_in, output), prices)


def _dearest(provider: Provider, model: str) -> Prices | None:
    """What the model charges where nothing is cached, or all, whichever is the dearer."""
    known = prices_of(provider, model)
    if known is None:
        return None
    # A configuration may make cached input the dearer one.
    price = max(known.prices.input, known.prices.cached or Decimal(0))
    return known.prices.model_copy(update={"input": price, "cached": None})


def _open_output(call: Call, provider: Provider) -> int:
    """Output tokens of a call that does not say how many it takes, all its choices together."""
    each = call.task.max_tokens if call.task else provider.max_output or provider.context
    return each * int(call.body.get("n") or 1)
