"""Records that say two things which cannot both be so."""

from __future__ import annotations

from typing import Any

import pytest

from job.records import Issue, Outcome, Result, results_to_table
from job.reduce.again import look_again, wanted
from job.reduce.counting import reduce_results
from job.reduce.totals import Totals, merge
from tests.job.report_run import issue, problem, record

PROMISE = "user: where is my money?\nassistant: Sorry. I have issued the refund to your card."
GRAVE = issue(severity="critical")


def totals_of(*results: Result) -> Totals:
    return reduce_results([results_to_table(results)])


def found(*results: Result) -> dict[str, int]:
    """Records by rule."""
    return {rule: c.records for rule, c in totals_of(*results).contradictions.by_rule().items()}


def said(number: int, outcome: Outcome, *issues: Issue, **fields: Any) -> Result:
    return Result(record(number, **fields), "answered", outcome, issues)


def rated(number: int, outcome: Outcome, rating: float, *issues: Issue, **fields: Any) -> Result:
    return said(number, outcome, *issues, kind="feedback", rating=rating, **fields)


def test_the_best_rating_with_a_grave_problem_and_the_worst_with_praise() -> None:
    praise = issue(severity="info")
    day = [
        rated(1, "problem", 5, GRAVE),
        rated(2, "positive", 1, praise),
        rated(3, "problem", 5, issue(severity="low")),
        rated(4, "problem", 1, GRAVE),
        rated(5, "positive", 5, praise),
        rated(6, "normal", 1),
    ]
    assert found(*day) == {"rating_against_text": 2}


@pytest.mark.parametrize(
    ("highest", "rating", "outcome", "records"),
    [
        (10, 10, "problem", 1),
        (10, 5, "problem", 0),
        (10, 2, "positive", 1),
        (5, 2, "positive", 0),
        (1, 1, "problem", 0),
        (1, 1, "positive", 0),
        (100, 100, "problem", 1),
    ],
)
def test_a_rating_is_judged_by_the_scale_of_its_source(
    highest: float, rating: float, outcome: Outcome, records: int
) -> None:
    day = [rated(1, "normal", highest), rated(2, outcome, rating, GRAVE)]
    elsewhere = rated(3, "normal", 5, source="other.csv")
    assert found(*day, elsewhere).get("rating_against_text", 0) == records


def test_levels_against_outcomes() -> None:
    day = [
        said(1, "normal", level="error"),
        said(2, "problem", GRAVE, level="info"),
        said(3, "problem", issue(severity="medium"), level="info"),
        said(4, "problem", GRAVE, level="error"),
        said(5, "normal", level="warning"),
        said(6, "normal", level="error", kind="feedback"),
    ]
    assert found(*day) == {"level_against_outcome": 2}


def test_every_case_is_counted_and_few_are_shown_no_two_with_the_same_words() -> None:
    day = [said(n, "normal", level="error", text=f"cache miss {n}") for n in range(50)]
    day += [said(n, "normal", level="error", text=f"odd thing {chr(n)}") for n in range(97, 110)]
    cases = totals_of(*day).contradictions.by_rule()["level_against_outcome"]
    assert cases.records == 63
    texts = [piece.text for piece in cases.best.pieces()]
    assert len(texts) == 5
    assert sum("cache miss" in text for text in texts) == 1


def promises(*results: Result) -> tuple[int, list[tuple[str | None, str]]]:
    """How many promises were broken, and (what was promised, what the log says) of those shown."""
    totals = totals_of(*results)
    seen = look_again([results_to_table([r]) for r in results], wanted(totals))
    return seen.broken, [(promise.quote, log.text) for promise, log in seen.pairs()]


def chat(session: str | None, text: str = PROMISE, number: int = 1) -> Result:
    return said(number, "normal", kind="conversation", session=session, text=text)


def log(session: str, text: str, outcome: Outcome = "problem", number: int = 2) -> Result:
    issues = (issue(),) if outcome == "problem" else ()
    return said(number, outcome, *issues, session=session, text=text)


def test_a_promise_against_the_log_of_the_same_session() -> None:
    assert promises(chat("s1"), log("s1", "refund failed: gateway declined")) == (
        1,
        [("I have issued the refund to your card.", "refund failed: gateway declined")],
    )


@pytest.mark.parametrize(
    "day",
    [
        [chat("s1"), log("s2", "refund failed")],
        [chat("s1"), log("s1", "refund issued", "normal")],
        [chat("s1"), log("s1", "parcel label could not be printed")],
        [chat("s1", "assistant: The refund has not been issued."), log("s1", "refund failed")],
        [chat("s1", "user: I have issued the refund"), log("s1", "refund failed")],
        [chat("s1", "assistant: 请问您是否已退款？"), log("s1", "退款失败")],
        [chat(None), log("s1", "refund failed")],
    ],
    ids=["session", "kept", "topic", "denied", "user", "asked", "none"],
)
def test_what_is_no_broken_promise(day: list[Result]) -> None:
    assert promises(*day) == (0, [])


@pytest.mark.parametrize(
    ("promise", "failure"),
    [
        ("已为您退款，请注意查收。", "退款失败：余额不足"),
        ("您的包裹已发货，预计明天送达。", "运单创建失败"),
        ("已帮您重置密码", "password reset rejected"),
        ("Your order will be delivered tomorrow.", "shipment 7 lost in transit"),
        ("I've cancelled your subscription.", "cancel request timed out"),
        ("We have sent you the code.", "sms provider refused the message"),
        ("我已提交退款申请。", "worker died"),
    ],
)
def test_promises_in_both_languages(promise: str, failure: str) -> None:
    broken, shown = promises(chat("s1", f"assistant: {promise}"), log("s1", failure))
    assert broken == 1
    assert shown == [(promise, failure)]


def test_all_broken_promises_are_counted_and_five_are_shown() -> None:
    day = []
    for n in range(40):
        day += [chat(f"s{n}", number=2 * n), log(f"s{n}", "refund failed", number=2 * n + 1)]
    broken, shown = promises(*day)
    assert broken == 40
    assert len(shown) == 5


def test_parts_merge_to_the_whole() -> None:
    day = [
        chat("s1"),
        log("s1", "refund failed"),
        rated(3, "problem", 5, GRAVE),
        rated(4, "normal", 10),
        said(5, "normal", level="error"),
        problem(6),
    ]
    parts = [totals_of(*day[n::2]) for n in range(2)]
    whole = totals_of(*day)
    assert merge(*parts) == merge(*reversed(parts)) == whole
    assert list(whole.contradictions.broken().values()) == [1]
