"""What attempts have cost, added up: in all, by what and by source. Pure.

Invariant: the sums by anything equal the total exactly; every attempt that may have been billed is
in them, retries and those whose answers were of no use included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from serve.ask.contract import Usage
from serve.ask.settings import Prices
from serve.ask.spend import Call, Ended, Ratios, cost_of, split_exactly, worst_cost

EXACT = Decimal("1e-12")
"""What prices of six decimals a million tokens can tell apart."""


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt. `command`: which command of the run made it. `currency`: of `reserved`, at
    worst, and `cost`; both None where no price was known. `ended` None: it is open, or whoever made
    it was gone before it was over."""

    ticket: str
    command: str
    call: Call
    currency: str | None
    reserved: Decimal | None
    cost: Decimal | None
    usage: Usage | None
    ended: Ended | None
    at: float

    def counts(self, prices: Mapping[str, Prices]) -> Decimal | None:
        """What it counts for, in the currency of `prices`; None where its price is not known."""
        own = prices.get(self.call.model)
        if self.ended == "free":
            return Decimal(0)
        if own is None:
            return None
        kept = self.currency == own.currency
        if self.ended == "answered" and self.usage is not None:
            return self.cost if kept and self.cost is not None else cost_of(self.usage, own)
        if kept and self.reserved is not None:
            return self.reserved
        return worst_cost(self.call, own, Ratios())


@dataclass(frozen=True, slots=True)
class Account:
    """What a run has cost. `total` None: the prices of some model are not known. `unconfirmed`:
    the part of it that may not have been billed; `before`: by earlier commands of the run.
    `shares`: by (what, source), whose sum is `total`."""

    total: Decimal | None = None
    unconfirmed: Decimal = Decimal(0)
    before: Decimal = Decimal(0)
    shares: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    attempts: int = 0


def reckon(rows: Iterable[Row], prices: Mapping[str, Prices], command: str) -> Account:
    """The account of the attempts of one run, as `command`, its last, sees it."""
    total = unconfirmed = before = Decimal(0)
    shares: dict[tuple[str, str], Decimal] = {}
    known, attempts = True, 0
    for row in rows:
        attempts += 1
        counts = row.counts(prices)
        if counts is None:
            known = False
            continue
        total += counts
        unconfirmed += counts if row.ended in (None, "unconfirmed") else 0
        before += counts if row.command != command else 0
        if counts:
            for whom, share in split_exactly(counts, row.call.billed_to or _NOBODY, EXACT).items():
                shares[whom] = shares.get(whom, Decimal(0)) + share
    if not known:
        return Account(attempts=attempts)
    return Account(total, unconfirmed, before, shares, attempts)


_NOBODY = {("other", ""): 1.0}
