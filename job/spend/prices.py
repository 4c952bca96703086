"""Whether the prices of the models that are asked are known.

Invariant: a cap on what is spent is accepted only where every model has a price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from job.errors import UsageError
from serve.ask.price_table import AS_OF, Known, prices_of
from serve.ask.settings import Provider


def known_prices(provider: Provider, models: Sequence[str]) -> dict[str, Known]:
    """The prices of `models`, in one currency; nothing where one of them has none."""
    found = {model: prices_of(provider, model) for model in models}
    known = {model: prices for model, prices in found.items() if prices is not None}
    return known if len(known) == len(models) else {}


def origin_words(known: Mapping[str, Known]) -> str:
    """Where prices come from."""
    if any(one.origin == "list" for one in known.values()):
        return f"the vendor's list prices of {AS_OF}"
    return "the prices of fupan.yaml"


def check_cap(
    cap: Decimal | None, provider: Provider | None, models: Sequence[str]
) -> Decimal | None:
    """`cap`, where it can be kept. Raises UsageError where no price says what a call costs."""
    if cap is None or provider is None or known_prices(provider, models):
        return cap
    without = [model for model in models if prices_of(provider, model) is None]
    raise UsageError(
        f"--max-spend: what {', '.join(without)} costs at {provider.base_url} is not known. Name "
        "the prices per million tokens in fupan.yaml, under the provider: "
        "prices: {currency: USD, input: 2.50, cached: 1.25, output: 10.00}"
    )


def cap_warnings(cap: Decimal | None, cost: float | None) -> list[str]:
    """What a plan says of a run that is expected to cost more than it may."""
    if cap is None or cost is None or cost <= cap:
        return []
    return [
        f"the run is expected to cost more than the {cap} of --max-spend: it will stop there, and "
        "go on with a higher one"
    ]
