"""What a plan foresees of a canary and of several models."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Call
from job.commands.preview_canary import canary_calls
from job.commands.preview_naming import naming_calls
from job.commands.preview_numbers import HANDED_ON, Range, Taken, costs, foresee
from job.estimates.kept import Earlier
from job.pack.packing import Fit
from serve.ask.limiter import Limits
from serve.ask.settings import Prices, Provider
from tests.job.test_dispatch import day

NONE = Range(0.0, 0.0, 0.0)
PRICES = {
    "small": Prices(currency="CNY", input=Decimal("0.5"), cached=None, output=Decimal(2)),
    "large": Prices(currency="CNY", input=Decimal(8), cached=None, output=Decimal(32)),
}


def taken(sent: list[Call], naming: list[Call], alone: tuple[Call, ...] = ()) -> Taken:
    told = (sent, naming, Limits(rpm=60), AnswerTokens("en"), Earlier(), NONE)
    return foresee(*told, alone=alone, models=("small", "large"))


def of(model: str, tokens_in: float, tokens_out: float) -> Call:
    return Call("fast", 2000, tokens_in, tokens_out, 1.0, model)


def test_a_canary_asks_the_records_in_packs_then_one_by_one_and_a_part_once_more() -> None:
    here = Provider(base_url="http://127.0.0.1:1/v1", models=("simulated",))
    fit = Fit(8192, None, instruction_tokens("en"))
    ask = AskSettings("simulated", "en")
    answers = AnswerTokens("en")
    records = day(300)
    canary = canary_calls(records, ask, fit, here, None, lambda way: Earlier(), answers)
    assert 1 <= len(canary.packed) == canary.packs.total() < 30
    assert len(canary.alone) == 300 + 60
    assert canary.digests == {record.digest for record in records}
    assert sum(answers.records.values()) == 300
    assert fit == Fit(8192, None, instruction_tokens("en"))


def test_the_calls_of_a_canary_count_in_every_number() -> None:
    sent = [of("small", 5000, 1500)] * 100
    alone = (of("small", 400, 40),) * 360
    with_it, without = taken(sent, [], alone), taken(sent, [])
    assert with_it.calls == without.calls + 360
    assert with_it.tokens_in.about == pytest.approx(without.tokens_in.about + 360 * 400)
    assert costs(with_it, PRICES).about > costs(without, PRICES).about
    # 60 requests a minute
    assert with_it.asking.about > without.asking.about + 300


def test_naming_is_priced_as_the_last_model_whoever_answers_the_records() -> None:
    naming = naming_calls(400, "en", None, "large")
    named_in = sum(call.tokens_in for call in naming)
    named_out = sum(call.tokens_out for call in naming)
    sent = [of("small", 4600, 1600)] * 100
    alike = taken([replace(call, model="small") for call in sent], [])
    cost = costs(taken(sent, naming), PRICES).about - costs(alike, PRICES).about
    assert cost == pytest.approx((8 * named_in + 32 * named_out) / 1e6)


def test_each_model_has_its_own_tokens_in_and_out() -> None:
    both = taken([of("small", 5000, 100), of("large", 1000, 2000)] * 50, [])
    small, large = both.by_model["small"], both.by_model["large"]
    assert small[0].about > 4 * large[0].about
    assert large[1].about > 10 * small[1].about
    assert both.tokens_in.about == pytest.approx(small[0].about + large[0].about)


def test_records_handed_on_widen_the_range_upwards_at_the_price_of_the_next_model() -> None:
    only_small = taken([of("small", 5000, 1500)] * 100, [])
    about, _, high = costs(only_small, PRICES)
    handed_on = only_small.by_model["large"][0]
    assert (handed_on.about, handed_on.low) == (0.0, 0.0)
    assert handed_on.high == pytest.approx(HANDED_ON * 5000 * 100, rel=0.05)
    assert high > about * 2
