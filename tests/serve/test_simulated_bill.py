"""What the simulated provider charges: exact, and for what was delivered unless told otherwise."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from serve.simulated import Settings
from serve.simulated_bill import Bill, Price
from tests.serve.simulated_requests import analysis, calling, chat

PRICES = {"simulated": {"input": "2", "cached": 0.2, "output": "3.5"}}
LONG = "Answer in English. " * 400
"""A system message long enough to be cached."""


def usage_cost(*replies: httpx.Response) -> Decimal:
    """What PRICES make of the usage that the answers told."""
    total = Decimal(0)
    for reply in replies:
        usage = reply.json()["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        total += Decimal(2) * (usage["prompt_tokens"] - cached)
        total += Decimal("0.2") * cached + Decimal("3.5") * usage["completion_tokens"]
    return total / 1_000_000


def test_the_bill_is_what_the_usage_of_the_answers_costs_with_cached_input_at_its_price() -> None:
    with calling(prices=PRICES, context=100_000) as caller:
        replies = [caller.post(analysis(["connection refused"], system=LONG)) for _ in range(3)]
        stats = caller.provider.stats()
    assert stats["cached_tokens"] > 0
    assert Decimal(stats["bill"]) == usage_cost(*replies)
    assert stats["bill_by_model"] == {"simulated": stats["bill"]}


def test_each_model_is_charged_at_its_own_price_and_has_a_cache_of_its_own() -> None:
    prices = {"a": {"input": "1", "output": "0"}, "b": {"input": "0", "output": "1"}}
    with calling(models=["a", "b"], prices=prices, context=100_000) as caller:
        first = caller.post(chat("x", system=LONG, model="a")).json()["usage"]
        second = caller.post(chat("x", system=LONG, model="b")).json()["usage"]
        stats = caller.provider.stats()
    assert second["prompt_tokens_details"]["cached_tokens"] == 0
    bill = {name: Decimal(amount) for name, amount in stats["bill_by_model"].items()}
    assert bill == {
        "a": Decimal(first["prompt_tokens"]) / 1_000_000,
        "b": Decimal(second["completion_tokens"]) / 1_000_000,
    }
    assert Decimal(stats["bill"]) == sum(bill.values())
    assert stats["by_model"] == {"a": 1, "b": 1}


@pytest.mark.parametrize("bill_lost", [False, True])
def test_an_answer_that_is_lost_on_the_way_is_billed_only_where_asked_for(
    bill_lost: bool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    faults = {1: "reset", 2: "server_error", 3: "rate_limit"}
    with calling(prices=PRICES, bill_lost=bill_lost, fault_schedule=faults, log=log) as caller:
        with pytest.raises(httpx.TransportError):
            caller.post(analysis(["connection refused"]))
        for _ in range(2):
            caller.post(analysis(["connection refused"]))
        refused = Decimal(caller.provider.stats()["bill"])
        whole = caller.post(analysis(["connection refused"]))
        stats = caller.provider.stats()
    # the lost answer is the same as the one that arrived
    assert refused == (usage_cost(whole) if bill_lost else 0)
    assert Decimal(stats["bill"]) == refused + usage_cost(whole)
    billed = [json.loads(line)["billed"] for line in log.read_text().splitlines()]
    assert billed == [bill_lost, False, False, True]


def test_without_prices_there_is_nothing_to_pay() -> None:
    with calling() as caller:
        caller.post(chat("x"))
        stats = caller.provider.stats()
    assert (stats["bill"], stats["bill_by_model"]) == ("0", {})


amounts = st.decimals(0, 1000, allow_nan=False, allow_infinity=False, places=9)
tokens = st.integers(0, 10**12)


@given(amounts, amounts, amounts, st.lists(st.tuples(tokens, tokens, tokens), max_size=20))
def test_the_bill_is_never_rounded(
    fresh: Decimal, cached: Decimal, out: Decimal, answers: list[tuple[int, int, int]]
) -> None:
    bill = Bill({"m": Price(input=fresh, cached=cached, output=out)})
    expected = Fraction(0)
    for new, known, written in answers:
        bill.add("m", new + known, known, written)
        expected += Fraction(fresh) * new + Fraction(cached) * known + Fraction(out) * written
    assert Fraction(bill.total()) == expected / 1_000_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"prices": {"other": {"input": 1, "output": 1}}},
        {"models": ["a", "b"], "prices": {"a": {"input": 1, "output": 1}}},
        {"prices": {"simulated": {"input": -1, "output": 1}}},
        {"prices": {"simulated": {"input": 1}}},
    ],
)
def test_prices_that_would_bill_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)
