"""Instructions made shorter by the simulated model, and judged by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.simulated_rules import says_the_same, shortened, weakened
from tests.serve.simulated_requests import calling, chat, content, json_schema, strict_object

RULES = [
    "Please make sure that the event is never longer than 12 words.",
    'Always remember to call the shop "The Green Pan".',
    "请务必不要写出客户的姓名，最多 3 项。",
]
TEXT = {"type": "string"}


def listed(name: str, item: dict[str, Any]) -> dict[str, Any]:
    """A `response_format` for a list of such items under this name."""
    schema = strict_object({name: {"type": "array", "items": strict_object(item)}})
    return json_schema(schema)


def ask(lines: list[dict[str, Any]], form: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The answer to these lines."""
    user = "\n".join(json.dumps(line) for line in lines)
    with calling(**settings) as caller:
        found: dict[str, Any] = json.loads(
            content(caller.post(chat(user, "Use JSON.", response_format=form)))
        )
    return found


def shorten(**settings: Any) -> list[dict[str, Any]]:
    """What the model makes of RULES."""
    lines = [{"id": str(i), "rule": rule} for i, rule in enumerate(RULES, start=1)]
    rules: list[dict[str, Any]] = ask(
        lines, listed("rules", {"id": TEXT, "text": TEXT}), **settings
    )["rules"]
    return rules


def test_rules_come_back_shorter_and_keep_what_they_say() -> None:
    found = shorten()
    assert [r["id"] for r in found] == ["1", "2", "3"]
    assert [r["text"] for r in found] == [
        "event is never longer than 12 words.",
        'call shop "The Green Pan".',
        "不要写出客户的姓名，最多 3 项。",
    ]


def test_a_forgetful_model_weakens_and_leaves_out_by_turns() -> None:
    found = shorten(forgets_rules=3)
    assert [r["id"] for r in found] == ["1", "3"]
    assert "12" not in found[0]["text"]
    assert "never" in found[0]["text"]
    assert "3" not in found[1]["text"]


def test_a_judge_says_whether_numbers_terms_and_negations_are_all_there() -> None:
    pairs = [
        ("At most 3 issues.", "3 issues at most."),
        ("At most 3 issues.", "At most 4 issues."),
        ("Never name users.", "Name users."),
        ('Say "shop" of it.', 'Say "store" of it.'),
        ("不要写出姓名", "写出姓名"),
        ("非常重要：区别对待", "重要：区别对待"),
        ("x", " "),
    ]
    lines = [{"id": str(i), "rule": r, "short": s} for i, (r, s) in enumerate(pairs, start=1)]
    form = listed("verdicts", {"id": TEXT, "same": {"type": "boolean"}})
    verdicts = [v["same"] for v in ask(lines, form)["verdicts"]]
    assert verdicts == [True, False, False, False, False, True, False]


def test_without_a_schema_the_lines_say_what_is_asked() -> None:
    answer = ask([{"id": "1", "rule": "Be very brief."}], {"type": "json_object"})
    assert answer == {"rules": [{"id": "1", "text": "Be brief."}]}


words = st.sampled_from(
    [
        *" ".join(RULES).split(" "),
        "very",
        "the",
        "an",
        '"the rule"',
        "don't",
        "12:30",
        "非常",
        "别",
        "\n",
    ]
)


@given(st.lists(words, min_size=1, max_size=20).map(" ".join))
def test_a_shortened_rule_says_the_same_and_a_weakened_one_does_not(rule: str) -> None:
    short, weak = shortened(rule), weakened(rule)
    assert len(short) <= len(rule)
    if rule.strip():
        assert says_the_same(rule, short)
    assert weak is None or not says_the_same(rule, weak)


@pytest.mark.parametrize("rule", ["Be brief.", "务必简短"])
def test_a_rule_with_nothing_to_lose_cannot_be_weakened(rule: str) -> None:
    assert weakened(rule) is None
