"""What models cost: as the configuration says, else the list prices that are known here.

Invariant: a list price is used only for the vendor's own host, and only where the configuration
names no prices at all: a proxy, a region or a contract may charge anything.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from serve.ask.settings import ANY_MODEL, Prices, Provider

AS_OF = date(2026, 10, 16)
"""When the list prices below were those of the vendors' own pages. Prices change: look there."""


def _usd(input_: str, cached: str, output: str) -> Prices:
    return Prices(input=Decimal(input_), cached=Decimal(cached), output=Decimal(output))


_OPENAI = {
    "gpt-4o": _usd("2.50", "1.25", "10.00"),
    "gpt-4o-mini": _usd("0.15", "0.075", "0.60"),
    "gpt-4.1": _usd("2.00", "0.50", "8.00"),
    "gpt-4.1-mini": _usd("0.40", "0.10", "1.60"),
    "gpt-4.1-nano": _usd("0.10", "0.025", "0.40"),
    "gpt-5-mini": _usd("0.25", "0.025", "2.00"),
    "gpt-5.4": _usd("2.50", "0.25", "15.00"),
    "gpt-5.4-mini": _usd("0.75", "0.075", "4.50"),
    "gpt-5.4-nano": _usd("0.20", "0.02", "1.25"),
    "gpt-5.5": _usd("5.00", "0.50", "30.00"),
}
"""Standard tier, requests of ordinary length. Not here: models that also charge for writing to
their cache, of which `usage` tells nothing."""
_DEEPSEEK = {
    "deepseek-flash": _usd("0.30", "0.006", "1.20"),
    "deepseek-v4-flash": _usd("0.30", "0.006", "1.20"),
    "deepseek-v4-pro": _usd("1.32", "0.044", "3.96"),
}
"""Of the peak hours; at other times they are half as high, so the bill is at most what is told."""

LIST_PRICES = {"api.openai.com": _OPENAI, "api.deepseek.com": _DEEPSEEK}
"""US dollars per million tokens, by host and model. A model by another name (a dated snapshot) may
cost something else and is not known."""


class Known(NamedTuple):
    """Prices and where they come from: "configuration" or "list" (see AS_OF)."""

    prices: Prices
    origin: Literal["configuration", "list"]


def prices_of(provider: Provider, model: str) -> Known | None:
    """What `model` costs at `provider`; None: not known."""
    if provider.prices is not None:
        prices = provider.prices.get(model) or provider.prices.get(ANY_MODEL)
        return Known(prices, "configuration") if prices else None
    host = urlsplit(provider.base_url).hostname or ""
    listed = LIST_PRICES.get(host, {}).get(model)
    return Known(listed, "list") if listed else None
