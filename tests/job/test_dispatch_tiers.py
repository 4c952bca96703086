"""Records shared among models, against a real server whose cheap model knows little."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from job.records import Record, Result
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import MemoryStore, dispatcher
from tests.job.make import record
from tests.job.test_dispatch import TRUTH

TWO = ("small", "large")
THREE = ("small", "middle", "large")
PRICES = {
    "small": {"input": "0.1", "output": "0.4"},
    "middle": {"input": "0.4", "output": "1.6"},
    "large": {"input": "2.0", "output": "8.0"},
}
EASY = "the disk is full on host"
HARD = "prove that the disk is full on host"


def served(models: tuple[str, ...], **settings: Any) -> Settings:
    settings |= {"models": models, "prices": {model: PRICES[model] for model in models}}
    return Settings(truth=TRUTH, time_scale=200.0, **settings)


def billed(models: tuple[str, ...]) -> dict[str, Any]:
    return {"models": models, "prices": {model: PRICES[model] for model in models}}


def day(easy: int, hard: int) -> list[Record]:
    return [record(f"{EASY} {n}") for n in range(easy)] + [
        record(f"{HARD} {n}") for n in range(hard)
    ]


def by_model(results: list[Result]) -> dict[str | None, int]:
    assert {result.via for result in results} == {"answered"}
    return dict(Counter(result.model for result in results))


async def test_each_record_is_answered_by_the_model_it_needs() -> None:
    with SimulatedProvider(served(TWO)) as server:
        async with dispatcher(server.base_url, **billed(TWO)) as asking:
            results = await asking.submit(day(20, 10))
            facts = asking.facts()["routing"]
    assert by_model(results) == {"small": 20, "large": 10}
    assert [row["routed"] for row in facts["tiers"]] == [20, 10]
    assert [row["tier"] for row in facts["tiers"]] == ["fast", "powerful"]
    assert facts["escalated"] == 0


async def test_what_the_weak_model_cannot_answer_the_next_one_does() -> None:
    weak = {"small": {"phrases": ["host 7", "host 11"]}}
    with SimulatedProvider(served(TWO, weak_models=weak)) as server:
        async with dispatcher(server.base_url, **billed(TWO)) as asking:
            results = await asking.submit(day(20, 0))
            facts = asking.facts()["routing"]
    assert by_model(results) == {"small": 18, "large": 2}
    strong = {result.record.text for result in results if result.model == "large"}
    assert strong == {f"{EASY} 7", f"{EASY} 11"}
    assert all(issue.cause for result in results for issue in result.issues)
    assert facts["escalated"] == 2
    assert [row["answered"] for row in facts["tiers"]] == [18, 2]


async def test_three_models_are_climbed_one_by_one_and_the_last_word_is_kept_for_review() -> None:
    everything = {model: {"phrases": ["host 3"]} for model in THREE}
    with SimulatedProvider(served(THREE, weak_models=everything)) as server:
        async with dispatcher(server.base_url, **billed(THREE)) as asking:
            results = await asking.submit(day(5, 0))
            facts = asking.facts()["routing"]
    assert Counter(result.via for result in results) == {"answered": 4, "review": 1}
    (reviewed,) = [result for result in results if result.via == "review"]
    assert (reviewed.model, reviewed.outcome) == ("large", "problem")
    assert [row["escalated"] for row in facts["tiers"]] == [1, 1, 0]


@pytest.mark.parametrize("models", [TWO, THREE])
async def test_a_rerun_recalls_every_answer_whoever_gave_it(models: tuple[str, ...]) -> None:
    store, records = MemoryStore(), day(12, 6)
    weak = {"small": {"phrases": ["host 2"]}}
    with SimulatedProvider(served(models, weak_models=weak)) as server:
        async with dispatcher(server.base_url, store, **billed(models)) as asking:
            first = await asking.submit(records)
        asked = server.stats()["requests"]
        async with dispatcher(server.base_url, store, **billed(models)) as asking:
            again = await asking.submit(records)
        assert server.stats()["requests"] == asked
    assert {result.via for result in again} == {"recalled"}
    assert [result.model for result in again] == [result.model for result in first]


async def test_the_cost_is_the_bill_and_the_saving_what_the_powerful_model_would_have_cost() -> (
    None
):
    records = day(60, 20)
    with SimulatedProvider(served(TWO)) as server:
        async with dispatcher(server.base_url, **billed(TWO)) as asking:
            await asking.submit(records)
            facts = asking.facts()["routing"]
        stats = server.stats()
    assert facts["cost"] == pytest.approx(float(Decimal(stats["bill"])), abs=1e-6)
    by_hand = (stats["prompt_tokens"] * 2.0 + stats["completion_tokens"] * 8.0) / 1e6
    assert facts["always_powerful"] == pytest.approx(by_hand, abs=1e-5)
    assert facts["saved"] == pytest.approx(facts["always_powerful"] - facts["cost"], abs=2e-6)
    assert facts["saved"] > 0


async def test_tries_that_failed_are_no_saving() -> None:
    with SimulatedProvider(served(TWO, weak_models={"small": {"phrases": ["*"]}})) as server:
        async with dispatcher(server.base_url, **billed(TWO)) as asking:
            results = await asking.submit(day(40, 0))
            facts = asking.facts()["routing"]
    assert by_model(results) == {"large": 40}
    assert facts["saved"] < 0


async def test_without_prices_no_saving_is_claimed() -> None:
    with SimulatedProvider(served(TWO)) as server:
        async with dispatcher(server.base_url, models=TWO) as asking:
            await asking.submit(day(3, 3))
            facts = asking.facts()["routing"]
    assert (facts["cost"], facts["saved"]) == (None, None)


async def test_what_a_model_can_do_is_found_out_for_each() -> None:
    with SimulatedProvider(served(TWO, unsupported=["json_schema"])) as server:
        async with dispatcher(server.base_url, **billed(TWO)) as asking:
            by_model(await asking.submit(day(8, 8)))
            assert {asking.asker.capabilities_of(model).json for model in TWO} == {"object"}
        assert server.stats()["by_status"]["400"] == 2


async def test_one_model_says_nothing_of_routing() -> None:
    with SimulatedProvider(Settings(truth=TRUTH, time_scale=200.0)) as server:
        async with dispatcher(server.base_url) as asking:
            await asking.submit(day(3, 3))
            assert "routing" not in asking.facts()


async def test_parts_of_a_long_record_may_be_answered_by_different_models() -> None:
    long = record("all is well here. " * 900 + "then the disk is full. " + "and so on. " * 900)
    weak = {"small": {"phrases": ["disk is full"]}, "middle": {"phrases": ["disk is full"]}}
    with SimulatedProvider(served(THREE, weak_models=weak, context=4096)) as server:
        async with dispatcher(server.base_url, context=4096, **billed(THREE)) as asking:
            (result,) = await asking.submit([long])
    assert (result.via, result.outcome) == ("answered", "problem")
    assert "large" in (result.model or "")
