"""Folders of runs from before money was counted by kind, source and team. Pure.

Invariant: what such a run did not note is told as not known, never as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_cost(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """`ledger` of whatever version, with all that a report needs: a run from before noted an amount
    in USD by the prices of its configuration, or none, and no parts of it."""
    usd = ledger["calls"].get("usd")
    known = usd is not None
    money = {
        "usd": None,
        "cost": usd,
        "currency": "USD" if known else None,
        "unconfirmed": None,
    }
    spend: dict[str, Any] = {
        "cost_before": None,
        "by_kind": {},
        "by_source": {},
        "by_label": {},
        "max_spend": None,
        "capped": False,
        "prices": "configuration" if known else None,
        "prices_as_of": None,
    }
    return {
        **ledger,
        "calls": {**money, **ledger["calls"]},
        "spend": {**spend, **ledger.get("spend", {})},
    }
