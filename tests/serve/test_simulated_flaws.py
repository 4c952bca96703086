"""Answers that are whole and in order, and worse than they could be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from serve.simulated import Settings
from serve.simulated_flaws import with_flaws
from tests.serve.simulated_requests import TRUTH, analysis, calling, results

TEXTS = [f"{i}: connection refused" for i in range(6)]
ARTICLE = [[1000, 0.001], [2000, 0.003], [4000, 0.008], [6000, 0.021], [8000, 0.053]]


def test_records_late_in_a_pack_are_answered_like_others() -> None:
    with calling(fades_from=4) as caller:
        found = results(caller.post(analysis(TEXTS)))
        alone = results(caller.post(analysis(TEXTS[3:4])))
        stats = caller.provider.stats()
    assert [r["id"] for r in found] == list("123456")
    assert [r["outcome"] for r in found] == ["problem"] * 3 + ["positive"] * 3
    assert found[3]["issues"][0]["event"] == "A user praised it"
    assert found[3]["issues"][0]["quote"] in TEXTS[3]
    assert alone[0]["outcome"] == "problem"
    assert stats["by_flaw"] == {"faded": 3}
    assert stats["by_fault"] == {}


def test_without_another_cause_the_outcome_alone_is_wrong() -> None:
    with calling(fades_from=1, truth={}) as caller:
        (found,) = results(caller.post(analysis(["x"])))
    assert (found["outcome"], found["issues"]) == ("unclear", [])


def test_late_records_may_be_taken_as_normal_or_forgotten() -> None:
    with calling(fades_from=4, fades_as="normal") as caller:
        found = results(caller.post(analysis(TEXTS)))
    assert [(r["outcome"], r["issues"]) for r in found[3:]] == [("normal", [])] * 3
    with calling(fades_from=4, fades_as="missing") as caller:
        found = results(caller.post(analysis(TEXTS)))
    assert [r["id"] for r in found] == list("123")


def answer(rows: int) -> dict[str, Any]:
    """A right answer about so many records, all normal."""
    return {"results": [{"id": str(i), "outcome": "normal", "issues": []} for i in range(rows)]}


def flawed(rows: int, prompt: int, **settings: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """What becomes of `answer(rows)`."""
    made = Settings.model_validate({"truth": TRUTH} | settings)
    texts = ["x"] * rows
    given, found = with_flaws(answer(rows), texts, "simulated", prompt, "en", made, Random(1))
    return given, dict(found)


def test_a_share_of_the_late_records_fades() -> None:
    _, found = flawed(4001, 500, fades_from=2, fade_share=0.25)
    assert 900 < found["faded"] < 1100


@pytest.mark.parametrize(
    ("prompt", "probability"), [(500, 0.001), (3000, 0.0055), (8000, 0.053), (9000, 0.069)]
)
def test_rows_get_lost_as_often_as_the_points_say(prompt: int, probability: float) -> None:
    rows = 20_000
    given, found = flawed(rows, prompt, row_faults=ARTICLE)
    assert found["lost"] == rows - len(given["results"])
    # five standard deviations
    assert abs(found["lost"] / rows - probability) < 5 * (probability / rows) ** 0.5


def test_a_lost_row_may_come_when_it_is_asked_for_again() -> None:
    with calling(row_faults=[[1, 0.5]], context=100_000) as caller:
        first = results(caller.post(analysis(TEXTS * 10)))
        second = results(caller.post(analysis(TEXTS * 10)))
    assert [r["id"] for r in first] != [r["id"] for r in second]


def test_a_weak_model_leaves_hard_problems_half_answered_and_a_strong_one_does_not() -> None:
    weak = {"small": {"phrases": ["3:", "great"]}}
    with calling(models=["large", "small"], weak_models=weak) as caller:
        small = results(caller.post(analysis([*TEXTS, "great"], model="small")))
        large = results(caller.post(analysis(TEXTS, model="large")))
        stats = caller.provider.stats()
    assert small[3]["issues"][0]["cause"] == small[3]["issues"][0]["suggestion"] == ""
    assert small[3]["issues"][0]["event"] == large[3]["issues"][0]["event"]
    assert small[:3] == large[:3]
    assert small[6]["issues"][0]["event"] == "A user praised it"
    assert stats["by_flaw"] == {"weak": 1}
    with calling(models=["small"], weak_models={"small": {"phrases": ["*"]}}) as caller:
        found = results(caller.post(analysis(TEXTS, model="small")))
    assert {issue["cause"] for r in found for issue in r["issues"]} == {""}


@pytest.mark.parametrize(
    "wrong",
    [
        {"fades_from": 0},
        {"row_faults": [[2, 0.1], [1, 0.2]]},
        {"row_faults": [[1, -0.1]]},
        {"weak_models": {"other": {"phrases": ["x"]}}},
        {"weak_models": {"simulated": {"phrases": []}}},
    ],
)
def test_flaws_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)
