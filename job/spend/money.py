"""Amounts of money as people read them. Pure.

Invariant: amounts that are shown under one total add up to it as shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from serve.ask.spend import round_exactly

CENT = Decimal("0.01")
FINEST = Decimal("0.000001")
"""What a report tells apart."""
DIGITS = 4
"""Of a total that are shown: a part of it is worth a look from a thousandth on."""
SMALL = Decimal("0.1")
"""Below, two digits that are not zero are shown."""


def shown(amount: Decimal) -> str:
    """`amount` with two decimals, a small one with two digits that tell something."""
    if amount == 0 or abs(amount) >= SMALL:
        return f"{amount.quantize(CENT):,}"
    return f"{amount.quantize(max(FINEST, Decimal(1).scaleb(amount.adjusted() - 1))):f}"


def as_written(amount: Decimal | float) -> str:
    """`amount` to its last digit, with two decimals at least."""
    exact = Decimal(str(amount))
    return f"{exact:,.2f}" if exact == exact.quantize(CENT) else f"{exact.normalize():,f}"


def shown_parts(parts: Sequence[tuple[str, float]], total: float) -> list[tuple[str, str]]:
    """`parts` (names may be alike), whose sum is `total`, with as many decimals as the total
    needs."""
    whole = Decimal(str(total))
    unit = CENT
    if whole:
        unit = min(CENT, max(FINEST, Decimal(1).scaleb(whole.adjusted() + 1 - DIGITS)))
    amounts = {f"{at:09}": Decimal(str(amount)) for at, (_, amount) in enumerate(parts)}
    rounded = round_exactly(amounts, unit).values()
    return [(name, f"{amount:,f}") for (name, _), amount in zip(parts, rounded, strict=True)]
