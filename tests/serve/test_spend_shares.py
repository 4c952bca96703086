"""Amounts that are shared out and rounded lose nothing."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from serve.ask.spend import round_exactly, split_exactly

UNIT = Decimal("1e-12")
_WEIGHTS = st.dictionaries(
    st.tuples(st.sampled_from(["operation", "feedback"]), st.text(max_size=2)),
    st.floats(0, 1e9),
    min_size=1,
    max_size=6,
)


@given(st.integers(0, 10**15), _WEIGHTS)
def test_shares_of_an_amount_add_up_to_it(
    units: int, weights: dict[tuple[str, str], float]
) -> None:
    amount = units * UNIT
    shares = split_exactly(amount, weights, UNIT)
    assert sum(shares.values(), Decimal(0)) == amount
    total = sum(map(Fraction, weights.values()))
    if total > 0:
        for whom, share in shares.items():
            exact = Fraction(amount) * Fraction(weights[whom]) / total
            assert abs(Fraction(share) - exact) <= 2 * Fraction(UNIT)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 10**13), max_size=6))
def test_rounded_amounts_add_up_to_the_total_rounded_up(units: dict[str, int]) -> None:
    unit = Decimal("0.000001")
    amounts = {name: n * UNIT for name, n in units.items()}
    rounded = round_exactly(amounts, unit)
    total, exact = sum(rounded.values(), Decimal(0)), sum(amounts.values(), Decimal(0))
    assert 0 <= total - exact < unit
    for name, value in rounded.items():
        assert abs(value - amounts[name]) <= unit
