"""The cap: whatever calls cost at worst, in whatever order they end, it holds."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.contract import Usage
from serve.ask.price_table import AS_OF, LIST_PRICES, prices_of
from serve.ask.settings import Prices, Provider
from serve.ask.spend import (
    ENOUGH,
    LEEWAY,
    SAFETY,
    SLACK_SECONDS,
    Budget,
    Call,
    Ended,
    cost_of,
    expected_cost,
)

PRICES = Prices(input=Decimal(2), cached=Decimal("0.2"), output=Decimal(3))
UNIT = Decimal("1e-12")


def _call(estimate: int = 1000, output: int = 500, seconds: float = 60.0) -> Call:
    return Call("m", estimate, output, seconds)


def _budget(cap: str | None, spent: str = "0") -> Budget:
    return Budget(None if cap is None else Decimal(cap), {"m": PRICES}, spent=Decimal(spent))


def test_cost_is_exact_to_the_last_digit() -> None:
    usage = Usage(tokens_in=1001, tokens_out=7, cached=1)
    assert cost_of(usage, PRICES) == Decimal("0.0020212")
    without = Prices(input=Decimal("0.1"), output=Decimal("0.2"))
    assert cost_of(Usage(3, 0, 3), without) == Decimal("0.0000003")
    assert expected_cost(1e6, 1e6, PRICES) == Decimal(5)


def test_prices_come_from_the_configuration_or_else_from_the_vendors_list() -> None:
    own = {"base_url": "https://api.openai.com/v1", "models": ["gpt-4.1"]}
    listed = prices_of(Provider.model_validate(own), "gpt-4.1")
    assert listed is not None
    assert (listed.prices.input, listed.origin) == (Decimal("2.00"), "list")
    assert prices_of(Provider.model_validate(own), "gpt-4.1-2025-04-14") is None
    proxy = {"base_url": "https://llm.example/v1", "models": ["gpt-4.1"]}
    assert prices_of(Provider.model_validate(proxy), "gpt-4.1") is None
    named = Provider.model_validate(own | {"prices": {"small": {"input": 1, "output": 1}}})
    assert prices_of(named, "gpt-4.1") is None
    all_models = Provider.model_validate(own | {"prices": {"currency": "CNY", "input": 1.1}})
    known = prices_of(all_models, "any")
    assert known is not None
    assert (known.prices.input, known.prices.currency) == (Decimal("1.1"), "CNY")


def test_list_prices_are_dated_us_dollars() -> None:
    assert AS_OF.year >= 2026
    for models in LIST_PRICES.values():
        for prices in models.values():
            assert prices.currency == "USD"
            assert 0 < (prices.cached or 0) < prices.input < prices.output


@pytest.mark.parametrize(
    "prices",
    [
        {"input": math.nan},
        {"input": -1},
        {"input": 1 / 3},
        {"inptu": 1},
        {"a": {"input": 1}, "b": {"input": 1, "currency": "CNY"}},
    ],
)
def test_prices_that_make_no_sense_are_refused(prices: object) -> None:
    with pytest.raises(ValueError, match="prices"):
        Provider.model_validate({"base_url": "https://x/v1", "models": ["a"], "prices": prices})


def _replied(budget: Budget, call: Call, counted: int) -> None:
    budget.enqueue("reply", call)
    budget.step(0.0)
    budget.settle("reply", "answered", Usage(counted, 10))


def test_a_reservation_is_the_worst_a_call_may_cost_and_learns_from_the_providers_count() -> None:
    budget = _budget(None)
    for _ in range(ENOUGH):
        assert budget.worst(_call()) == cost_of(Usage(int(1000 * SAFETY), 500), PRICES)
        _replied(budget, _call(), 1200)
    for _ in range(2):
        assert budget.worst(_call()) == cost_of(Usage(1320, 500), PRICES)
        _replied(budget, _call(), 900)
    # Nothing is known yet of another kind of text.
    other = Call("m", 1000, 500, 60.0, {("conversation", "a.log"): 1.0})
    assert budget.worst(other) == cost_of(Usage(2000, 500), PRICES)


def test_a_request_is_never_reckoned_below_our_own_count() -> None:
    budget = _budget(None)
    for _ in range(ENOUGH):
        _replied(budget, _call(1250), 900)
    assert budget.worst(_call()) == cost_of(Usage(1100, 500), PRICES)


def test_a_first_reply_that_was_counted_low_promises_nothing_of_the_next() -> None:
    budget = _budget("0.05")
    _replied(budget, _call(1250, 100), 900)
    for number in range(20):
        budget.enqueue(f"pack {number}", _call(5750, 100))
    for _ in range(20):
        for ticket in budget.step(0.0).granted:
            budget.settle(ticket, "answered", Usage(5400, 100))
    assert Decimal("0.02") < budget.spent <= Decimal("0.05")


@given(
    st.lists(st.tuples(st.integers(1, 6000), st.floats(0, 1), st.booleans()), max_size=120),
    st.integers(1, 6),
)
def test_the_cap_holds_while_ratios_grow_within_the_assumption(
    calls: list[tuple[int, float, bool]], at_once: int
) -> None:
    """Assumed, as docs/spend.md says: at most SAFETY times our count before ENOUGH replies of the
    kind, from then on at most LEEWAY times the largest ratio so far, or our count."""
    cap = Decimal("0.2")
    budget = Budget(cap, {"m": PRICES})
    largest, replies = Decimal(1), Counter[str]()
    on_wire: list[tuple[str, Call, int]] = []
    bill = Decimal(0)
    for number, (estimate, share, log) in enumerate(calls):
        kind = "operation" if log else "conversation"
        call = Call("m", estimate, 50, 60.0, {(kind, ""): 1.0})
        bound = largest * LEEWAY if replies[kind] >= ENOUGH else max(SAFETY, largest * LEEWAY)
        counted = max(1, int(estimate * bound * Decimal(share)))
        budget.enqueue(f"t{number}", call)
        if f"t{number}" in budget.step(0.0).granted:
            on_wire.append((f"t{number}", call, counted))
            bill += cost_of(Usage(counted, 50), PRICES)
        else:
            budget.withdraw(f"t{number}")
        assert bill <= cap
        while len(on_wire) >= at_once:
            ticket, over, tokens = on_wire.pop(0)
            budget.settle(ticket, "answered", Usage(tokens, 50))
            largest = max(largest, Decimal(tokens) / over.estimate_in)
            replies.update(what for what, _ in over.billed_to)


def test_what_does_not_fit_now_waits_and_what_never_will_is_refused() -> None:
    budget = _budget("0.010")  # a call is 0.0055 at worst
    for ticket in "abc":
        budget.enqueue(ticket, _call())
    step = budget.step(0.0)
    assert (list(step.granted), step.refused) == (["a"], ())
    assert step.wake_at == 60.0 + SLACK_SECONDS
    budget.settle("a", "free")
    step = budget.step(1.0)
    assert (list(step.granted), step.refused) == (["b"], ())
    assert budget.spent == 0
    budget.settle("b", "unconfirmed")
    assert budget.spent == Decimal("0.0055")
    step = budget.step(2.0)
    assert (list(step.granted), step.refused) == ([], ("c",))
    assert budget.closed


def test_nothing_is_granted_once_the_cap_was_reached() -> None:
    budget = _budget("0.006", spent="0.001")
    budget.enqueue("big", _call())
    assert budget.step(0.0).refused == ("big",)
    budget.enqueue("small", _call(1, 1))
    assert budget.step(0.0).refused == ("small",)


def test_what_a_dear_model_may_not_cost_is_left_to_cheaper_ones() -> None:
    dear = Prices(input=Decimal(10), output=Decimal(30))
    budget = Budget(Decimal("0.05"), {"m": PRICES, "dear": dear})
    compression = Call("dear", 1500, 1200, 60.0, optional=True)
    budget.enqueue("compression", compression)
    assert budget.step(0.0).refused == ("compression",)
    assert not budget.closed
    budget.enqueue("hard", Call("dear", 1500, 1200, 60.0))
    budget.enqueue("easy", _call())
    step = budget.step(0.0)
    assert (step.refused, list(step.granted)) == (("hard",), ["easy"])
    # Each refusal ends a model, however small its next call, so the asking ends.
    budget.enqueue("next", Call("dear", 1, 1, 60.0))
    assert budget.step(0.0).refused == ("next",)
    assert budget.closed == {"dear"}


def test_a_call_whose_caller_is_gone_counts_as_spent_and_holds_nobody_up() -> None:
    budget = _budget("0.010")
    budget.enqueue("lost", _call())
    budget.enqueue("next", _call())
    at = budget.step(0.0).wake_at
    step = budget.step(at)
    assert (step.granted, step.refused) == ({}, ("next",))
    assert budget.spent == Decimal("0.0055")
    assert budget.settle("lost", "answered", Usage(100, 10)) == Decimal("0.00023")
    assert budget.spent == Decimal("0.00023")


def test_a_settlement_that_is_repeated_counts_once() -> None:
    budget = _budget(None)
    budget.enqueue("a", _call())
    budget.step(0.0)
    assert budget.settle("a", "answered", Usage(1000, 0)) == Decimal("0.002")
    assert budget.settle("a", "unconfirmed") is None
    assert budget.spent == Decimal("0.002")


_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "free", "lose", "withdraw", "wait", "crash"]),
        st.integers(1, 4000),
        st.integers(0, 2000),
    ),
    max_size=60,
)


@given(_ACTIONS, st.integers(1, 40))
def test_no_schedule_of_calls_losses_and_crashes_exceeds_the_cap(
    actions: list[tuple[str, int, int]], milli: int
) -> None:
    cap = Decimal(milli) / 1000
    budget, now = Budget(cap, {"m": PRICES}), 0.0
    on_wire: dict[str, Call] = {}
    open_amounts: dict[str, Decimal] = {}
    billed = Decimal(0)  # by a provider that bills whatever it may
    over = Decimal(0)
    answered = 0
    for number, (what, tokens, output) in enumerate(actions):
        some = next(iter(on_wire), None)
        if what == "ask":
            call = _call(tokens, output)
            on_wire[f"t{number}"] = call
            budget.enqueue(f"t{number}", call)
        elif what == "wait":
            now += tokens / 20
        elif what == "crash":
            # The host is gone; the next one knows what was written of the attempts in flight.
            budget = Budget(cap, {"m": PRICES}, spent=over, closed=budget.closed)
            on_wire = {ticket: on_wire[ticket] for ticket in open_amounts}
            for ticket, amount in open_amounts.items():
                budget.reopen(ticket, on_wire[ticket], amount, now)
        elif some is not None and some in open_amounts:
            call, amount = on_wire.pop(some), open_amounts.pop(some)
            ended: Ended = "unconfirmed"
            usage, counts = None, amount
            if what == "answer":
                # At most what the reservation allows for.
                usage = Usage(call.estimate_in, min(output, call.max_output))
                ended, counts = "answered", cost_of(usage, PRICES)
                answered += 1
            elif what == "free":
                ended, counts = "free", Decimal(0)
            elif what == "withdraw":
                budget.withdraw(some)  # it was granted meanwhile: given back unused
                ended, counts = "free", Decimal(0)
            assert budget.settle(some, ended, usage) == counts
            billed += counts
            over += counts
        step = budget.step(now)
        for ticket, granted in step.granted.items():
            assert granted is not None
            open_amounts[ticket] = granted
        for ticket in step.refused:
            del on_wire[ticket]
        at_worst = billed + sum(open_amounts.values(), Decimal(0))
        assert at_worst <= cap
        assert budget.spent + budget.reserved == over + sum(open_amounts.values(), Decimal(0))
