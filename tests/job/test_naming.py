"""Names of themes: what is asked, what of a reply is used, and what code says instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.naming.check import check_name
from job.naming.code_names import EXAMPLES, TITLE_CHARACTERS, ThemeInput
from job.naming.naming import (
    FIRST_ROUND,
    MANY,
    MOST_NAMED,
    NAMES_SCHEMA,
    SECOND_ROUND,
    NamingRequest,
    naming_requests,
    read_names,
    worth_asking,
)
from job.records import SEVERITIES
from serve.ask import tokens
from tests.job.naming_world import issue, theme

CONTEXT = 8_192


def themes(count: int, words: int = 8) -> list[ThemeInput]:
    text = " ".join(["delay"] * words)
    return [
        theme(*[issue(f"{text} {n}", count=count - n) for _ in range(3)], name=f"t-{n:03}")
        for n in range(count)
    ]


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "title": "Refunds are late",
        "summary": "Users wait for their money.",
        "cause": "The approval queue is full.",
        "basis": "stated",
        "action": "Add approvers.",
        "severity_reason": "Users cannot get their money.",
    } | changes


def reply(*answers: Mapping[str, Any]) -> str:
    return json.dumps({"themes": list(answers)}, ensure_ascii=False)


def ask(*inputs: ThemeInput) -> NamingRequest:
    (request,) = naming_requests(inputs, "en", CONTEXT)
    return request


def lines(asked: NamingRequest) -> list[dict[str, Any]]:
    return [json.loads(line) for line in asked.request.user.split("\n")]


# What is asked


def test_a_request_holds_a_theme_a_line_and_no_counts() -> None:
    asked = ask(
        theme(issue(count=37), issue("Money is missing", None, None, count=12), name="t-a"),
        theme(issue("Disk full"), name="t-b"),
    )
    first, second = lines(asked)
    assert (first["id"], second["id"]) == ("1", "2")
    assert first["issues"][0] == {
        "event": "The refund is late",
        "cause": "Approval queue is full",
        "suggestion": "Add approvers",
    }
    assert first["issues"][1] == {"event": "Money is missing"}
    assert first["severity"] == "high"
    assert "37" not in asked.request.user
    assert "t-a" not in asked.request.user


def test_at_most_five_different_issues_are_shown() -> None:
    same = [issue(severity=severity) for severity in SEVERITIES]
    other = [issue(f"Event {word}") for word in "abcdefgh"]
    (line,) = lines(ask(theme(*same, *other)))
    assert [shown["event"] for shown in line["issues"]] == [
        "The refund is late",
        *[f"Event {word}" for word in "abcd"],
    ]
    assert len(line["issues"]) == EXAMPLES


def test_line_breaks_in_a_text_do_not_break_the_line() -> None:
    asked = ask(theme(issue('late\n{"id":"9"}')), theme(issue("disk")))
    assert [line["id"] for line in lines(asked)] == ["1", "2"]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("count", [1, 4, 5, 12, 60])
def test_few_requests_that_fit_and_ask_about_every_theme(language: Any, count: int) -> None:
    inputs = themes(count)
    asked = naming_requests(inputs, language, CONTEXT)
    assert len(asked) == min(FIRST_ROUND, -(-count // 4))
    assert [t for request in asked for t in request.themes] == inputs
    for request in asked:
        used = tokens.count(request.request.system) + tokens.count(request.request.user)
        assert used + request.request.max_output <= CONTEXT
        assert request.request.estimate_in == used
        assert request.request.schema == NAMES_SCHEMA


def test_what_does_not_fit_is_not_asked() -> None:
    long = themes(60, words=400)
    asked = naming_requests(long, "en", 2_048)
    assert len(asked) == FIRST_ROUND
    assert 0 < sum(len(request.themes) for request in asked) < 60
    assert naming_requests(long, "en", 600) == []


def test_the_second_round_says_what_was_wrong() -> None:
    inputs = themes(30)
    problems = {inputs[0].id: ["title says 40, which no issue says"]}
    asked = naming_requests(inputs, "en", CONTEXT, SECOND_ROUND, problems)
    assert len(asked) <= SECOND_ROUND
    first, second, *_ = lines(asked[0])
    assert first["avoid"] == problems[inputs[0].id]
    assert "avoid" not in second


def test_the_largest_themes_are_worth_asking_about_and_a_long_tail_is_not() -> None:
    few = [theme(issue(count=1), name=f"t-{n}") for n in range(MANY)]
    assert worth_asking(few) == sorted(few, key=lambda t: t.id)
    many = [*few, theme(issue(count=2), name="t-big")]
    assert [t.id for t in worth_asking(many)] == ["t-big"]
    lots = themes(MOST_NAMED + 20)
    assert worth_asking(lots[::-1]) == lots[:MOST_NAMED]


def test_no_themes() -> None:
    assert naming_requests([], "en", CONTEXT) == []
    assert worth_asking([]) == []


# What of a reply is used


def test_a_good_answer_becomes_a_name_whose_severity_is_from_code() -> None:
    asked = ask(theme(issue(severity="low", count=9), name="t-a"))
    text = reply(answer())
    jsonschema.validate(json.loads(text), NAMES_SCHEMA)
    names = read_names(asked, text, "en")
    assert names.problems == {}
    name = names.good["t-a"]
    assert (name.title, name.cause, name.basis) == (
        "Refunds are late",
        "The approval queue is full.",
        "stated",
    )
    assert (name.severity, name.named_by) == ("low", "model")


def test_missing_doubled_and_invented_ids() -> None:
    asked = ask(*[theme(issue(f"Event {word}"), name=f"t-{word}") for word in "abc"])
    names = read_names(
        asked, reply(answer(id="1"), answer(id="2"), answer(id="2"), answer(id="7")), "en"
    )
    assert set(names.good) == {"t-a"}
    assert names.problems == {"t-b": ["answered more than once"], "t-c": ["no answer"]}


@pytest.mark.parametrize(
    "text",
    ["", "sorry", '{"themes": [', '{"themes": 3}', "[1]", '{"themes": [1, null]}', "}{"],
)
def test_a_reply_that_is_no_answer(text: str) -> None:
    names = read_names(ask(theme(name="t-a")), text, "en")
    assert names.good == {}
    assert set(names.problems) == {"t-a"}


def test_a_fence_or_prose_around_the_json_is_stepped_over() -> None:
    text = f"Here you are:\n```json\n{reply(answer(id=1))}\n```"
    assert set(read_names(ask(theme(name="t-a")), text, "en").good) == {"t-a"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": "3 refunds are late"}, "3"),
        ({"summary": "Seen 157 times."}, "157"),
        ({"summary": "出现了１５７次"}, "157"),
        ({"action": "Ask user u_81"}, "u_81"),
        ({"cause": "Host web-d0b41 is down"}, "web-d0b41"),
        ({"severity_reason": "error_rate is high"}, "error_rate"),
        ({"summary": "See <email-7c1d2a9e10>"}, "<email-7c1d2a9e10>"),
        ({"title": "Error 40 in checkout"}, "40"),
        ({"title": ""}, "title is empty"),
        ({"title": "x" * (TITLE_CHARACTERS + 1)}, "title is longer"),
        ({"summary": "word " * 200}, "summary is too long"),
        ({"title": None}, "title is empty"),
    ],
)
def test_a_name_that_says_what_it_was_not_given_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    asked = ask(theme(issue("Checkout fails with 403 after 400 seconds"), name="t-a"))
    names = read_names(asked, reply(answer(**changes)), "en")
    assert names.good == {}
    assert any(said in problem for problem in names.problems["t-a"])


@pytest.mark.parametrize(
    "title",
    ["Checkout fails with 403", "ORDER-DB refuses after 30 s", "Pool order-db times out (30s)"],
)
def test_a_name_may_repeat_what_it_was_given(title: str) -> None:
    given_issue = issue("Checkout fails with 403", "order-db refuses", "Wait 30 s")
    assert read_names(ask(theme(given_issue, name="t-a")), reply(answer(title=title)), "en").good


def test_a_name_in_the_other_language_is_refused() -> None:
    asked = ask(theme(issue("退款没有到账"), name="t-a"))
    text = reply(answer())
    assert read_names(asked, text, "zh").problems == {"t-a": ["summary is not in Chinese"]}
    assert set(read_names(asked, text, "en").good) == {"t-a"}


def test_a_number_of_another_theme_does_not_pass() -> None:
    asked = ask(theme(issue("Code 403"), name="t-a"), theme(issue("Disk"), name="t-b"))
    names = read_names(asked, reply(answer(id="1"), answer(id="2", title="Code 403")), "en")
    assert set(names.good) == {"t-a"}


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_name_made_of_given_text_always_passes_the_check_for_numbers(a: str, b: str) -> None:
    given_theme = theme(issue(f"event {a}", f"cause {b}"))
    parts = {"title": "t", "summary": f"event {a}", "cause": f"cause {b}", "action": ""}
    assert [p for p in check_name(given_theme, parts, "en") if "which no issue says" in p] == []
