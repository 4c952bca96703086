"""What is known of each model before it is asked: what it takes, and what it costs. Pure.

Invariant: whoever has to know what a target can do and charges asks here, of providers' models and
of the cluster's own alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import orjson

from serve.ask.price_table import prices_of
from serve.ask.settings import Prices
from serve.gateway.contract import Target
from serve.gateway.settings import GatewaySettings
from serve.models.settings import LOCAL, GeneratorSettings, ModelSettings, served

JsonMode = Literal["schema", "object", "words"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Of one model. `prices`: None where nobody knows them; `free`: in every currency; `context`:
    tokens of input and output together, a guess unless `bounded`; `max_output`: tokens of one
    answer, None: what the context leaves; `added`: bytes that its provider's settings add to each
    request; `json`: how it is asked for JSON at first; `writes`: whether it answers chats, as far
    as is known."""

    prices: Prices | None
    free: bool
    context: int
    bounded: bool
    max_output: int | None
    added: int
    json: JsonMode
    writes: bool = True


def terms_of(settings: GatewaySettings) -> dict[Target, Terms]:
    """Of every model that can be asked, providers' models first, in the order of fupan.yaml."""
    found = {}
    for name, provider in settings.providers.items():
        for model in provider.models:
            known = prices_of(provider, model)
            found[Target(name, model)] = Terms(
                prices=known.prices if known else None,
                free=False,
                context=provider.context,
                bounded="context" in provider.model_fields_set,
                max_output=provider.max_output,
                added=len(orjson.dumps(provider.extra_body)),
                json="schema" if provider.json_mode == "auto" else provider.json_mode,
            )
    for name, model_settings, _ in served(settings.models):
        found[Target(LOCAL, name)] = _own(model_settings)
    return found


def _own(model: ModelSettings) -> Terms:
    # The context of an embedder bounds each of its inputs, not all of them together.
    context = model.context if isinstance(model, GeneratorSettings) else 0
    return Terms(
        prices=model.prices,
        free=model.prices is None,
        context=context,
        bounded=True,
        max_output=None,
        added=0,
        json="schema",
        writes=isinstance(model, GeneratorSettings),
    )
