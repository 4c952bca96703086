from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.validate import result_objects, validate

GOOD = {
    "id": "1",
    "outcome": "problem",
    "issues": [
        {
            "event": "e",
            "cause": "c",
            "basis": "stated",
            "suggestion": "s",
            "severity": "low",
            "quote": 'a } tricky " one',
        }
    ],
}
TEXTS = {"1": 'here is a } tricky " one', "2": "two", "3": "three"}


def reply(*results: object) -> str:
    return orjson.dumps({"results": list(results)}).decode()


@given(st.integers(0, 400))
def test_a_cut_reply_never_yields_more_than_was_whole(cut: int) -> None:
    whole = reply(GOOD, {**GOOD, "id": "2"}, {**GOOD, "id": "3"})
    verdict = validate(whole[: max(0, len(whole) - cut)], "length" if cut else "stop", TEXTS)
    assert verdict.answers.keys() | verdict.wrong.keys() == TEXTS.keys()
    assert not verdict.answers.keys() & verdict.wrong.keys()
    assert verdict.whole == (cut == 0)


@given(st.text(max_size=300))
def test_any_text_at_all_gets_a_verdict(text: str) -> None:
    verdict = validate(text, "stop", TEXTS)
    assert set(verdict.wrong) == set(TEXTS) - set(verdict.answers) - set(verdict.incomplete)


@pytest.mark.parametrize(
    "wrapped",
    ["```json\n{}\n```", "Here you are:\n{}", "  {}\n\n", "```\n{}\n```"],
)
def test_a_fence_or_prose_around_the_json_is_stepped_over(wrapped: str) -> None:
    verdict = validate(wrapped.replace("{}", reply(GOOD)), "stop", {"1": TEXTS["1"]})
    assert list(verdict.answers) == ["1"]
    assert verdict.whole


def test_a_bare_list_and_numeric_ids_are_understood() -> None:
    text = orjson.dumps([{**GOOD, "id": 1}]).decode()
    assert list(validate(text, "stop", {"1": TEXTS["1"]}).answers) == ["1"]


def test_the_second_object_survives_a_broken_first() -> None:
    broken = '{"results":[{"id":"1","outcome":}, ' + orjson.dumps({**GOOD, "id": "2"}).decode()
    objects, whole = result_objects(broken)
    assert [item["id"] for item in objects] == ["2"]
    assert not whole


def test_normal_has_no_issues_and_praise_has_one_of_severity_info() -> None:
    issue = GOOD["issues"][0]
    verdict = validate(
        reply(
            {"id": "1", "outcome": "normal", "issues": [issue]},
            {"id": "2", "outcome": "positive", "issues": [issue, issue]},
        ),
        "stop",
        {"1": "x", "2": "y"},
    )
    assert verdict.answers["1"].issues == ()
    (praise,) = verdict.answers["2"].issues
    assert (praise.severity, praise.cause, praise.suggestion) == ("info", None, None)


def test_a_quote_that_is_nowhere_becomes_null_and_a_flag() -> None:
    (answer,) = validate(reply(GOOD), "stop", {"1": "something else"}).answers.values()
    assert answer.issues[0].quote is None
    assert answer.flags == ("quote_not_found",)


@pytest.mark.parametrize(
    "change", [{"outcome": "terrible"}, {"issues": "none"}, {"outcome": None}, {"issues": 3}]
)
def test_an_unknown_outcome_or_shape_is_unusable(change: dict[str, object]) -> None:
    verdict = validate(reply({**GOOD, **change}), "stop", {"1": "x"})
    assert verdict.wrong == {"1": "unusable"}
