"""How the work was shared among several models, and what that saved. Pure.

Invariant: the saving is this run's own tokens at the prices of the most powerful model, less what
they cost. Tokens of tries that ended in a more powerful model asking again are no part of the
comparison, since it would have been asked in the first place; they are part of the cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from job.analyse.tiers import first_tier, next_tier, tier_names
from job.pack.packing import Item
from serve.ask.contract import Usage
from serve.ask.settings import Prices
from serve.ask.spend import cost_of

DIGITS = 6
"""Of money that is shown."""


@dataclass(slots=True)
class TierCount:
    """What one model did. `routed`: records that began with it; `answered`: records, or parts of
    them, that it was the last to be asked about; `escalated`: those that it handed on; `calls`:
    its replies, with the tokens they took."""

    routed: int = 0
    answered: int = 0
    escalated: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    @property
    def usage(self) -> Usage:
        """Its tokens together."""
        return Usage(self.tokens_in, self.tokens_out, self.tokens_cached)


@dataclass(slots=True)
class Routing:
    """Where records begin and go on, among `models` from the cheapest to the most powerful, with
    the `prices` of each (None: not known)."""

    models: tuple[str, ...]
    prices: tuple[Prices | None, ...]
    counts: list[TierCount] = field(init=False)
    reasons: Counter[str] = field(default_factory=Counter)
    _closed: set[str] = field(default_factory=set)
    _wasted_in: float = 0.0
    _wasted_out: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [TierCount() for _ in self.models]

    def begin(self, text: str) -> int:
        """The tier where a record that holds `text` begins."""
        tier, reason = first_tier(text, self.models)
        self.counts[tier].routed += 1
        self.reasons[reason] += 1
        return tier

    def model_of(self, items: Sequence[Item]) -> str:
        """The model that is asked about a pack."""
        return self.models[items[0].tier]

    def close(self, model: str) -> bool:
        """There is no money left for `model`; whether there may be for another one."""
        self._closed.add(model)
        return not self._closed.issuperset(self.models)

    def is_closed(self, items: Sequence[Item]) -> bool:
        """Whether there is no money left to ask about a pack."""
        return bool(items) and self.model_of(items) in self._closed

    def can_escalate(self, items: Sequence[Item]) -> bool:
        """Whether there is a more powerful model than that of a pack."""
        return next_tier(self.models, items[0].tier) is not None

    def replied(self, items: Sequence[Item], usage: Usage) -> None:
        """A reply about `items` took so many tokens; each item's share goes by its length."""
        count = self.counts[items[0].tier]
        count.calls += 1
        count.tokens_in += usage.tokens_in
        count.tokens_cached += min(usage.cached, usage.tokens_in)
        count.tokens_out += usage.tokens_out
        total = sum(item.line_tokens for item in items) or 1
        for item in items:
            item.took_in += usage.tokens_in * item.line_tokens / total
            item.took_out += usage.tokens_out * item.line_tokens / total

    def answered(self, item: Item) -> None:
        """The answer to `item` is used."""
        self.counts[item.tier].answered += 1

    def escalate(self, item: Item) -> None:
        """Move `item` to the next more powerful model. There is one (see `can_escalate`)."""
        following = next_tier(self.models, item.tier)
        if following is None:
            raise ValueError(f"there is no model above {self.models[item.tier]}")
        self.counts[item.tier].escalated += 1
        self._wasted_in += item.took_in
        self._wasted_out += item.took_out
        item.took_in = item.took_out = 0.0
        item.tier = following

    def facts(self) -> dict[str, Any]:
        """For `timing.json` and the report; nothing where one model did all."""
        if len(self.models) == 1:
            return {}
        rows = [
            {
                "tier": name,
                "model": model,
                "routed": count.routed,
                "answered": count.answered,
                "escalated": count.escalated,
                "calls": count.calls,
                "tokens_in": count.tokens_in,
                "tokens_cached": count.tokens_cached,
                "tokens_out": count.tokens_out,
                "cost": _shown(_cost(count.usage, prices)),
            }
            for name, model, count, prices in zip(
                tier_names(self.models), self.models, self.counts, self.prices, strict=True
            )
        ]
        return {
            "tiers": rows,
            "reasons": dict(self.reasons.most_common()),
            "escalated": sum(count.escalated for count in self.counts),
            **self._saving(),
        }

    def _saving(self) -> dict[str, Any]:
        costs = [
            _cost(count.usage, prices)
            for count, prices in zip(self.counts, self.prices, strict=True)
        ]
        known = [cost for cost in costs if cost is not None]
        best = self.prices[-1]
        if len(known) < len(costs) or best is None:
            return {"currency": None, "cost": None, "always_powerful": None, "saved": None}
        cost, powerful = sum(known, Decimal()), cost_of(self._useful(), best)
        return {
            "currency": best.currency,
            "cost": _shown(cost),
            "always_powerful": _shown(powerful),
            "saved": _shown(powerful - cost),
        }

    def _useful(self) -> Usage:
        """The tokens that one model for all would have taken too."""
        tokens_in = sum(count.tokens_in for count in self.counts)
        tokens_out = sum(count.tokens_out for count in self.counts)
        cached = sum(count.tokens_cached for count in self.counts)
        share = 1 - self._wasted_in / tokens_in if tokens_in else 1.0
        return Usage(
            round(tokens_in * share), round(tokens_out - self._wasted_out), round(cached * share)
        )


def _cost(usage: Usage, prices: Prices | None) -> Decimal | None:
    return None if prices is None else cost_of(usage, prices)


def _shown(money: Decimal | None) -> float | None:
    return None if money is None else round(float(money), DIGITS)
