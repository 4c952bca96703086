"""The money of a key in a month: held at worst, never more than its limit."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.purse import Purse, month_of, next_month

D = Decimal


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.one_of(st.none(), st.integers(0, 100))), max_size=60)
)
def test_a_purse_never_promises_more_than_its_limit(steps: list[tuple[int, int | None]]) -> None:
    purse, limit, held = Purse(), D(10), list[tuple[str, Decimal]]()
    for n, (cents, share) in enumerate(steps):
        worst = D(cents) / 100
        if purse.fits(worst, limit):
            purse.hold(str(n), worst)
            held.append((str(n), worst))
        if share is not None and held:
            ticket, most = held.pop(share % len(held))
            purse.settle(ticket, None if share == 0 else most * share / 100)
        assert purse.spent + sum((most for _, most in held), D(0)) == purse.spent + purse.reserved
        assert purse.spent + purse.reserved <= limit


@settings(max_examples=40)
@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)))
def test_the_next_month_begins_when_this_one_ends(day: datetime) -> None:
    at = day.replace(tzinfo=UTC).timestamp()
    then = next_month(at)
    assert at < then <= at + 31 * 86_400
    assert month_of(then - 1) == month_of(at) != month_of(then)
