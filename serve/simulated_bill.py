"""What the simulated provider would charge: exact to the last digit.

Invariant: the bill is worked out from whole tokens in decimal arithmetic and never rounded, and
with nothing that a client reckons its spend with, so that it can prove one wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_PER = 1_000_000
"""Prices are for this many tokens."""
_DIGITS = 100
"""Of the arithmetic: far more than tokens times prices have, so nothing is rounded."""

Amount = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """Of one model, for a million tokens. `cached` None: cached input costs what other does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Amount
    cached: Amount | None = None
    output: Amount

    def cost(self, prompt: int, cached: int, completion: int) -> Decimal:
        """The exact price of so many tokens; `cached` of `prompt` were in the cache."""
        cached_price = self.input if self.cached is None else self.cached
        with localcontext(prec=_DIGITS):
            total = (
                self.input * (prompt - cached) + cached_price * cached + self.output * completion
            )
            return total / _PER


@dataclass(slots=True)
class _Tokens:
    prompt: int = 0
    cached: int = 0
    completion: int = 0


class Bill:
    """Adds up what answers cost. A model without a price is free."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._used = {model: _Tokens() for model in prices}

    def add(self, model: str, prompt: int, cached: int, completion: int) -> None:
        """Charge an answer of `model`; `cached` of its `prompt` tokens were in the cache."""
        used = self._used.get(model)
        if used:
            used.prompt += prompt
            used.cached += cached
            used.completion += completion

    def by_model(self) -> dict[str, str]:
        """What each model that has a price cost, as decimal strings."""
        return {model: _written(cost) for model, cost in self._costs().items()}

    def total(self) -> str:
        """What all cost, as a decimal string."""
        with localcontext(prec=_DIGITS):
            return _written(sum(self._costs().values(), Decimal(0)))

    def _costs(self) -> dict[str, Decimal]:
        return {
            model: price.cost(used.prompt, used.cached, used.completion)
            for (model, price), used in zip(self._prices.items(), self._used.values(), strict=True)
        }


def _written(amount: Decimal) -> str:
    with localcontext(prec=_DIGITS):
        return f"{amount.normalize():f}"
