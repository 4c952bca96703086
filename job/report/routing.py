"""What the pages say of a run whose records were shared among several models.

Invariant: made from the report alone; a saving is told only where every price is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from job.report.words import Words, share
from job.spend.money import shown

Rows = list[tuple[str, Any]]


def routing_rows(report: Mapping[str, Any], words: Words) -> Rows:
    """What each model did, and the saving; nothing where one model did all, or nothing was
    asked."""
    routing = report["timing"].get("routing")
    if not routing or not any(tier["calls"] for tier in routing["tiers"]):
        return []
    rows: Rows = [
        (
            words.labelled(words.name("tier", tier["tier"]), tier["model"]),
            _did(tier, routing, words),
        )
        for tier in routing["tiers"]
    ]
    if routing["saved"] is not None:
        label = "saved" if routing["saved"] >= 0 else "lost"
        rows.append((words(label, model=routing["tiers"][-1]["model"]), _saved(routing, words)))
    return rows


def _did(tier: Mapping[str, Any], routing: Mapping[str, Any], words: Words) -> str:
    did = words(
        "tier_did",
        answered=tier["answered"],
        escalated=tier["escalated"],
        calls=tier["calls"],
        tokens=tier["tokens_in"] + tier["tokens_out"],
    )
    if routing["currency"] is None:
        return did
    return words.list([did, _money(tier["cost"], routing["currency"])])


def _saved(routing: Mapping[str, Any], words: Words) -> str:
    amount = _money(abs(routing["saved"]), routing["currency"])
    if not routing["always_powerful"]:
        return amount
    return amount + words.bracketed(share(abs(routing["saved"]) / routing["always_powerful"]))


def _money(amount: float, currency: str) -> str:
    return f"{shown(Decimal(str(amount)))} {currency}"
