"""What the pages say of what a run has cost.

Invariant: made from the report alone; the parts that are shown add up to the total that is shown; a
price that is not known is never a price of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from job.records import KINDS
from job.report.words import Words
from job.spend.money import as_written, shown, shown_parts

Rows = list[tuple[str, Any]]

SHOWN_PARTS = 20
"""Sources or teams that are listed, those that cost most; the others are one line."""
BREAKDOWNS = {
    "by_kind": "cost_by_kind",
    "by_source": "cost_by_source",
    "by_label": "cost_by_label",
}
"""By what the cost is broken down, and under which heading."""


def cost_rows(cost: Mapping[str, Any], words: Words) -> Rows:
    """What the run has cost, all its commands together; nothing where no price is known."""
    if cost["cost"] is None or cost["currency"] is None:
        return []
    amounts = [("cost_so_far", cost["cost"])]
    amounts += [(name, cost[name]) for name in ("cost_before", "unconfirmed") if cost[name]]
    currency = cost["currency"]
    rows: Rows = [
        (words(name), f"{shown(Decimal(str(amount)))} {currency}") for name, amount in amounts
    ]
    if cost["max_spend"] is not None:
        rows.append((words("max_spend"), f"{as_written(cost['max_spend'])} {currency}"))
    day = cost["prices_as_of"]
    rows.append((words("prices"), words("prices_list", day=day) if day else words("prices_own")))
    return rows


def parts(cost: Mapping[str, Any], words: Words) -> list[tuple[str, Rows]]:
    """The cost by kind, by source and by team, each under its heading; those that tell nothing are
    left out."""
    if not cost["cost"] or cost["currency"] is None:
        return []
    return [
        (words(heading, currency=cost["currency"]), _rows(by, cost[by], cost["cost"], words))
        for by, heading in BREAKDOWNS.items()
        if any(not name.startswith("(") for name in cost[by])
    ]


def cap_notice(report: Mapping[str, Any], words: Words) -> str | None:
    """That the run is partial because it may spend no more; None where it is not, or where what it
    has spent cannot be read any more."""
    cost, ledger = report["cost"], report["ledger"]
    if not cost.get("capped") or cost["cost"] is None:
        return None
    return words(
        "notice_capped",
        cap=f"{as_written(cost['max_spend'])} {cost['currency']}",
        spent=f"{shown(Decimal(str(cost['cost'])))} {cost['currency']}",
        unasked=ledger["unasked"],
        records=ledger["records"],
    )


def _rows(by: str, amounts: Mapping[str, float], total: float, words: Words) -> Rows:
    most = list(amounts.items())[:SHOWN_PARTS]
    named = [(_named(by, name, words), amount) for name, amount in most]
    if rest := len(amounts) - len(most):
        exact = Decimal(str(total)) - sum(Decimal(str(amount)) for _, amount in most)
        named.append((words("more", n=rest), float(exact)))
    return list(shown_parts(named, total))


def _named(by: str, name: str, words: Words) -> str:
    """What a part is called: names of sources and teams are the user's own, but for those in
    brackets."""
    if by == "by_kind":
        return words(name) if name in KINDS else words.name("billed", name)
    return words.name("billed", name) if name.startswith("(") else name
