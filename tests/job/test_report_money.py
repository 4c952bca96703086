"""What the pages say of money."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.report.money import SHOWN_PARTS, cap_notice, cost_rows, parts
from job.report.words import Words
from job.spend.money import as_written, shown, shown_parts

COST: dict[str, Any] = {
    "cost": 0.0123,
    "currency": "CNY",
    "unconfirmed": 0.002,
    "cost_before": 0.01,
    "max_spend": 5.0,
    "prices": "list",
    "prices_as_of": "2026-10-16",
    "capped": True,
    "by_kind": {"operation": 0.0111, "naming": 0.0012},
    "by_source": {"app.log": 0.0111, "(naming)": 0.0012},
    "by_label": {"(none)": 0.0111, "(naming)": 0.0012},
}


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0.00"),
        ("4.999", "5.00"),
        ("0.123", "0.12"),
        ("0.0345", "0.034"),
        ("1234.5", "1,234.50"),
    ],
)
def test_an_amount_is_as_short_as_it_can_be(amount: str, text: str) -> None:
    assert shown(Decimal(amount)) == text


def test_a_cap_is_shown_as_it_was_written() -> None:
    assert [as_written(n) for n in (5.0, 0.005, 2.5, 1000.0)] == [
        "5.00",
        "0.005",
        "2.50",
        "1,000.00",
    ]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_parts_add_up_to_the_total_as_they_are_shown(millionths: list[int]) -> None:
    amounts = [("alike", float(Decimal(m) / 10**6)) for m in millionths]
    total = float(Decimal(sum(millionths)) / 10**6)
    shown_so = [text for _, text in shown_parts(amounts, total)]
    told = [Decimal(text.replace(",", "")) for text in shown_so]
    decimals = max(len(text.partition(".")[2]) for text in shown_so)
    unit = Decimal(1).scaleb(-decimals)
    assert 0 <= sum(told, Decimal(0)) - Decimal(str(total)) < unit


def test_the_cost_is_told_with_what_of_it_is_not_certain_and_where_prices_come_from() -> None:
    assert cost_rows(COST, Words("en")) == [
        ("Cost so far", "0.012 CNY"),
        ("of it by earlier commands of this run", "0.010 CNY"),
        ("of it not confirmed by the provider", "0.0020 CNY"),
        ("May cost at most (--max-spend)", "5.00 CNY"),
        ("Prices", "the vendor’s list of 2026-10-16"),
    ]
    assert cost_rows({"cost": None, "currency": None}, Words("en")) == []


def test_the_cost_is_broken_down_by_kind_source_and_team() -> None:
    told = parts(COST, Words("en"))
    assert told == [
        ("Cost by kind, CNY", [("Operation logs", "0.01110"), ("Naming problems", "0.00120")]),
        ("Cost by source, CNY", [("app.log", "0.01110"), ("Naming problems", "0.00120")]),
    ]
    labelled = COST | {"by_label": {"shop": 0.01, "(none)": 0.0023}}
    assert ("Cost by team, CNY", [("shop", "0.01000"), ("No team", "0.00230")]) in parts(
        labelled, Words("en")
    )
    many = {f"{n}.log": 0.001 for n in range(SHOWN_PARTS + 3)}
    rows = dict(parts(COST | {"cost": 0.023, "by_source": many}, Words("zh")))
    assert len(rows["按来源的费用（CNY）"]) == SHOWN_PARTS + 1
    assert rows["按来源的费用（CNY）"][-1][1] == "0.00300"


def test_a_team_called_as_something_of_ours_keeps_its_name_and_its_line() -> None:
    teams = {"naming": 0.6, "(naming)": 0.3, "operation": 0.1}
    cost = COST | {"cost": 1.0, "by_label": teams, "by_source": {"instructions": 1.0}}
    told = dict(parts(cost, Words("en")))
    assert told["Cost by team, CNY"] == [
        ("naming", "0.600"),
        ("Naming problems", "0.300"),
        ("operation", "0.100"),
    ]
    assert told["Cost by source, CNY"] == [("instructions", "1.000")]


def test_a_cap_that_was_reached_is_said_first_with_its_amount_and_what_to_do() -> None:
    report = {"cost": COST, "ledger": {"unasked": 7, "records": 10}}
    said = cap_notice(report, Words("en"))
    assert said is not None
    assert "may spend 5.00 CNY (--max-spend), of which 0.012 CNY is spent" in said
    assert "7 of 10 records" in said
    assert "higher --max-spend goes on" in said
    assert "5.00 CNY" in str(cap_notice(report, Words("zh")))
    assert cap_notice(report | {"cost": COST | {"capped": False}}, Words("en")) is None
    # The account was damaged after the cap was reached.
    assert cap_notice(report | {"cost": COST | {"cost": None}}, Words("en")) is None
