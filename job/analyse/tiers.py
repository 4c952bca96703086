"""Which of the models of a run answers which record. Pure.

Invariant: a record begins at the tier that its text needs and goes up only, so it is asked of each
model at most as often as the contract allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from serve.ask.route import TIERS, Reason, Tier, place, route


def first_tier(text: str, models: Sequence[str]) -> tuple[int, Reason]:
    """The place among `models` (from the cheapest to the most powerful) where `text` begins, and
    why."""
    if len(models) == 1:
        return 0, "plain"
    found = route(text)
    return place(found.tier, len(models)), found.reason


def next_tier(models: Sequence[str], at: int) -> int | None:
    """The place after `at` of another, more powerful model; None where there is none."""
    return next((n for n in range(at + 1, len(models)) if models[n] != models[at]), None)


def tier_names(models: Sequence[str]) -> tuple[Tier, ...]:
    """What the places of two or three `models` are for: of two, the first is for what is easy."""
    return TIERS[:1] + TIERS[len(TIERS) + 1 - len(models) :]
