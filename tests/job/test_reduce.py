"""Counting: right, and the same however the results are split."""

from __future__ import annotations

import itertools
from datetime import timedelta
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.records import SEVERITIES, Outcome, Result, Via, results_to_table
from job.reduce.counting import reduce_results
from job.reduce.pieces import EVIDENCE, QUOTE_CHARS, TEXT_CHARS, excerpt
from job.reduce.totals import QUARTER_US, Totals, merge
from tests.job.report_run import NOON, issue, problem, record


def totals_of(*results: Result) -> Totals:
    return reduce_results([results_to_table(results)])


@st.composite
def some_results(draw: st.DrawFn) -> list[Result]:
    """Up to 30 results over few themes, users, texts and times, so that ties are common."""
    results = []
    for number in range(draw(st.integers(0, 30))):
        issues = draw(
            st.lists(
                st.builds(
                    issue,
                    theme=st.sampled_from(["t-a", "t-b", None]),
                    severity=st.sampled_from(SEVERITIES),
                    quote=st.sampled_from([None, "slow", "not there"]),
                ),
                max_size=3,
            )
        )
        row = record(
            number,
            text=draw(
                st.sampled_from(
                    ["slow page 1", "slow page 2", "no answer", "assistant: 已为您退款"]
                )
            ),
            time=draw(st.none() | st.integers(0, 3).map(lambda h: NOON + timedelta(hours=h))),
            user=draw(st.sampled_from([None, "ann", "bo"])),
            session=draw(st.sampled_from([None, "s1", "s2"])),
            service=draw(st.sampled_from([None, "shop"])),
            level=draw(st.sampled_from([None, "info", "error"])),
            rating=draw(st.sampled_from([None, 1.0, 5.0, 10.0])),
            kind=draw(st.sampled_from(["operation", "feedback", "conversation"])),
            flags=draw(st.sampled_from([(), ("bad_bytes",)])),
        )
        outcome: Outcome | None = draw(
            st.sampled_from(["problem", "normal", "positive", "unclear", None])
        )
        via: Via = draw(st.sampled_from(["answered", "folded", "review"]))
        results.append(Result(row, via, outcome, tuple(issues)))
    return results


@settings(max_examples=12)
@given(results=some_results(), data=st.data())
def test_any_split_and_order_gives_the_same_totals(
    results: list[Result], data: st.DataObject
) -> None:
    whole = totals_of(*results)
    shuffled = data.draw(st.permutations(results))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(results)), max_size=4)))
    edges = [0, *cuts, len(results)]
    parts = [shuffled[a:b] for a, b in itertools.pairwise(edges)]

    assert reduce_results(results_to_table(part) for part in parts) == whole
    assert reduce(merge, (totals_of(*part) for part in parts), Totals()) == whole
    left_last = reduce(merge, (totals_of(*part) for part in reversed(parts)), Totals())
    assert left_last == whole


def test_merging_leaves_both_sides_as_they_were() -> None:
    a, b = totals_of(problem(1)), totals_of(problem(2))
    merge(a, b)
    assert a == totals_of(problem(1))
    assert b == totals_of(problem(2))


def test_counts_by_kind_via_and_outcome() -> None:
    totals = totals_of(
        problem(1),
        Result(record(2, kind="feedback"), "folded", "normal"),
        Result(record(3), "failed", None),
    )
    assert totals.count() == 3
    assert totals.count(outcome="problem") == 1
    assert totals.count(kind="feedback", via="folded") == 1
    assert totals.count(via="failed", outcome="") == 1


def test_a_record_counts_once_in_a_theme_and_once_in_each_of_its_themes() -> None:
    totals = totals_of(problem(1, issue(), issue(), issue(theme="t-other")))
    assert totals.themes["t-pay"].records == 1
    assert totals.themes["t-pay"].issues == 2
    assert totals.themes["t-other"].records == 1
    assert sum(totals.problems.values()) == 1


def test_a_problem_hour_has_the_severity_of_its_worst_issue() -> None:
    totals = totals_of(problem(20, issue(severity="low"), issue(severity="critical")))
    quarter = int((NOON + timedelta(minutes=15)).timestamp() * 1_000_000) // QUARTER_US
    assert totals.problems == {(quarter, "critical"): 1}


def test_users_are_counted_once_over_all_tables() -> None:
    tables = [results_to_table([problem(n, user=f"u{n % 7}")]) for n in range(40)]
    totals = reduce_results(tables)
    assert totals.themes["t-pay"].users == 7
    assert len(totals.users) == 7


def test_problems_without_a_theme_are_counted_as_such() -> None:
    totals = totals_of(problem(1, issue(theme=None)), problem(2, issue(theme=None), issue()))
    assert totals.themes[""].records == 1
    assert totals.themes["t-pay"].records == 1


def test_praise_is_kept_apart_from_problems() -> None:
    praise = Result(record(1, kind="feedback"), "answered", "positive", (issue(severity="info"),))
    totals = totals_of(praise, problem(2))
    assert totals.praise["t-pay"].records == 1
    assert totals.themes["t-pay"].records == 1


def test_a_quote_that_is_not_in_its_text_is_left_out_and_counted() -> None:
    totals = totals_of(problem(1, issue(quote="never said")))
    assert totals.misquoted == 1
    assert [piece.quote for piece in totals.themes["t-pay"].worst.pieces()] == [None]


def test_evidence_is_bounded_and_holds_the_worst_and_the_earliest() -> None:
    results = [problem(n, text=f"page {chr(97 + n % 26)}{chr(97 + n // 26)}") for n in range(300)]
    results[250] = problem(250, issue(severity="critical"), text="everything is lost")
    theme = totals_of(*results).themes["t-pay"]
    assert len(theme.worst.pieces()) == EVIDENCE
    assert len(theme.sample.pieces()) == EVIDENCE
    assert theme.worst.pieces()[0].record == results[250].record.id
    assert theme.earliest.pieces()[0].record == results[0].record.id


def test_the_worst_pieces_do_not_all_say_the_same() -> None:
    results = [problem(n, text=f"retry {n} failed") for n in range(50)]
    results.append(problem(60, text="disk is full"))
    texts = {piece.text for piece in totals_of(*results).themes["t-pay"].worst.pieces()}
    assert texts == {"retry 0 failed", "disk is full"}


@pytest.mark.parametrize("at", [0, 500, 9_000])
def test_a_long_text_is_kept_around_its_quote(at: int) -> None:
    text = "x" * at + "the cause" + "y" * (10_000 - at)
    part, offset = excerpt(text, "the cause")
    assert "the cause" in part
    assert len(part) == TEXT_CHARS
    assert text[offset : offset + len(part)] == part


def test_a_very_long_quote_is_kept_by_its_beginning() -> None:
    text = "ab" * 5_000
    piece = totals_of(problem(1, issue(quote=text), text=text)).themes["t-pay"].worst.pieces()[0]
    assert piece.quote == text[:QUOTE_CHARS]
    assert piece.quote in piece.text


def test_no_results_give_empty_totals() -> None:
    assert totals_of() == Totals() == reduce_results([])
