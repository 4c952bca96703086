"""Names that code gives, and the severity of every theme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.naming.code_names import (
    TITLE_CHARACTERS,
    ThemeInput,
    code_name,
    severity_of,
    severity_reason,
    title_of,
)
from job.records import Severity
from tests.job.naming_world import issue, theme


def test_code_names_a_theme_in_the_language_of_the_report() -> None:
    inputs = theme(
        issue("The refund has not arrived", "The queue is full", "Add staff", count=5),
        issue("退款没有到账", "审批积压", "增加人手", count=2),
        issue("退钱太慢", "审批积压", "催办", count=1),
    )
    zh = code_name(inputs, "zh")
    assert (zh.title, zh.summary, zh.cause) == ("退款没有到账", "退款没有到账。", "审批积压")
    assert (zh.action, zh.named_by) == ("增加人手", "code")
    en = code_name(inputs, "en")
    assert (en.title, en.cause) == ("The refund has not arrived", "The queue is full")


def test_code_takes_texts_of_the_other_language_where_there_are_no_own() -> None:
    assert code_name(theme(issue("退款没有到账", None, None)), "en").title == "退款没有到账"


def test_the_basis_is_that_of_most_issues_that_name_a_cause() -> None:
    mixed = theme(
        issue(count=3), issue(count=2, stated=False), issue(cause=None, count=9, stated=False)
    )
    assert code_name(mixed, "en").basis == "stated"
    assert code_name(theme(issue(cause=None)), "en").cause is None


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"low": 5}, "low"),
        ({"low": 6, "high": 3}, "high"),
        ({"low": 7, "high": 3}, "low"),
        ({"low": 2, "medium": 2, "critical": 1}, "medium"),
        ({"info": 3}, "info"),
        ({"low": 90, "critical": 9}, "low"),
    ],
)
def test_a_third_of_graver_issues_decides_the_severity(
    counts: dict[Severity, int], expected: Severity
) -> None:
    issues = [issue(severity=severity, count=count) for severity, count in counts.items()]
    assert severity_of(theme(*issues).severities) == expected


def test_the_reason_for_the_severity_counts() -> None:
    issues = [issue(severity="low", count=2), issue(severity="high", count=1)]
    assert severity_reason(theme(*issues).severities, "en") == (
        "Of 3 issues: 1 high, 2 low; at least a third are high or worse"
    )
    assert severity_reason(theme(*issues).severities, "zh") == (
        "共 3 条问题：高 1 条、低 2 条；至少三分之一达到“高”及以上"
    )
    same = [issue(severity="critical", count=2)]
    assert severity_reason(theme(*same).severities, "en") == "All 2 issues are critical"
    assert severity_reason(theme(*same).severities, "zh") == "2 条问题均为“严重”"


def test_issues_whose_words_are_not_at_hand_count_too() -> None:
    more = ThemeInput("t-1", (issue(severity="low"),), {("high", "inferred"): 2, ("low", None): 1})
    name = code_name(more, "en")
    assert (more.count, name.severity, name.basis) == (4, "high", "inferred")
    assert name.severity_reason == "Of 4 issues: 2 high, 2 low; at least a third are high or worse"


def test_the_action_belongs_to_what_is_shown() -> None:
    leases = theme(
        *(issue(f"Failed to renew lease for {n} seconds", None, f"Ask {n}") for n in (30, 31, 356)),
        issue("Added to list of failed maps", None, "Look at maps"),
    )
    named = code_name(leases, "en")
    assert named.title == "Failed to renew lease"
    assert named.action is not None
    assert named.action.startswith("Ask ")
    caused = theme(
        issue("The export failed", "The disk is full", "Make room", count=2),
        issue("No report came", None, "Find out why", count=3),
    )
    assert (code_name(caused, "en").cause, code_name(caused, "en").action) == (
        "The disk is full",
        "Make room",
    )


def test_what_one_of_many_names_is_not_the_cause_of_all() -> None:
    many = theme(issue("It is slow", "The rain", "Wait"), issue("It is slow", None, "Ask", count=5))
    assert (code_name(many, "en").cause, code_name(many, "en").action) == (None, "Ask")


def test_a_grave_theme_says_which_words_make_it_so() -> None:
    grave = theme(
        issue("The refund is missing", severity="high", count=4),
        issue("I cannot order", severity="high", count=1),
        issue("The page is slow", severity="low", count=1),
    )
    reason = "Of 6 issues: 5 high, 1 low; at least a third are high or worse"
    assert code_name(grave, "en").severity_reason == (
        f"{reason}; they tell of something that could not be done at all and of money"
    )
    assert code_name(grave, "zh").severity_reason.endswith("；其中涉及事情完全办不成、钱款")
    assert (
        "speak" not in code_name(theme(issue("It is slow", severity="low")), "en").severity_reason
    )


def test_a_theme_is_named_by_what_most_of_it_says() -> None:
    named = code_name(
        theme(
            issue("Order of a red lamp from Lyon failed at checkout", count=1),
            issue("Orders failed at checkout all morning", count=1),
            issue("My order failed at checkout", count=1),
            issue("Why does the order for a drone to Ghent fail", count=1),
        ),
        "en",
    )
    assert named.title == "My order failed at checkout"
    said = ["创建学习机订单失败，城市沈阳", "保存吹风机订单失败，收货地宁波", "创建订单失败"]
    zh = code_name(theme(*(issue(event, None, None) for event in said)), "zh")
    assert zh.title == "创建订单失败"


@pytest.mark.parametrize(
    ("event", "title"),
    [
        ("The disk is full.", "The disk is full"),
        ("退款很慢。", "退款很慢"),
        ("创建订单失败，商品 学习机，城市 沈阳", "创建订单失败"),
        ("I was told a wrong, long outdated price for the lamp that I bought yesterday",
         "I was told a wrong, long outdated price for the lamp that I…"),
        ("The export failed after the disk filled up, so no report was sent to anybody at all",
         "The export failed after the disk filled up"),
        ("word " * 30, "word " * 11 + "word…"),
        ("长" * 80, "长" * 59 + "…"),
        ("好，" + "长" * 80, "好，" + "长" * 57 + "…"),
    ],
)  # fmt: skip
def test_a_title_ends_with_a_clause(event: str, title: str) -> None:
    assert title_of(event) == title


@given(st.text(min_size=1, max_size=300))
def test_a_title_is_short(event: str) -> None:
    assert len(title_of(event)) <= TITLE_CHARACTERS
