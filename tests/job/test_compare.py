"""Two sets of answers to the same records: what is called equal, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from job.compare.agreement import agreement, pairs_of, texts_to_place
from job.compare.chance import least_difference, sign_test, wilson
from job.compare.comparison import Side, compare
from job.compare.matching import match_issues
from job.compare.meaning import Aspect, Meaning
from job.compare.positions import Fade, Place
from job.compare.verdict import Agreed, Grown, Tried, decide
from job.records import Issue, Kind, Outcome, Result, Via
from serve.ask.ask import CallCounts
from tests.job.make import record
from tests.job.themes_world import foreseen, plain_space

NOTHING = Grown(0, 0, 0, 0, 100)
ALL_SAME = Agreed(100, 100, 100, 100)
KINDS: tuple[Kind, ...] = ("operation", "feedback")


def issue(event: str = "refund late", cause: str | None = "queue full", **more: Any) -> Issue:
    values: dict[str, Any] = {
        "basis": "stated",
        "suggestion": "add workers",
        "severity": "high",
        "quote": "late",
    }
    return Issue(event=event, cause=cause, **values | more)


def result(
    number: int,
    issues: Sequence[Issue] = (),
    outcome: Outcome | None = "problem",
    via: Via = "answered",
) -> Result:
    kind = KINDS[number % len(KINDS)]
    return Result(record(f"record {number}", kind=kind), via, outcome, tuple(issues))


def foreseen_meaning(*results: Sequence[Result]) -> Meaning:
    first, second = results
    texts = texts_to_place(pairs_of(first, second))
    return Meaning.of(texts, foreseen, plain_space())


def test_the_first_word_is_the_meaning_here() -> None:
    texts: dict[Aspect, list[str]] = {"event": ["refund late 1", "refund slow", "login failed"]}
    meaning = Meaning.of(texts, foreseen, plain_space())
    assert meaning.same("event", "refund late 1", "refund slow")
    assert not meaning.same("event", "refund slow", "login failed")
    assert meaning.same("event", "never embedded", "never embedded")
    assert meaning.same("cause", None, None)
    assert not meaning.same("event", "refund slow", None)


def test_issues_are_matched_best_to_best_whatever_their_order() -> None:
    first = [issue("refund late", "queue full"), issue("login failed", "token expired")]
    second = [issue("login broken", "token old"), issue("refund slow", "queue long")]
    results = [result(0, first)], [result(0, second)]
    meaning = foreseen_meaning(*results)
    pairs = match_issues(first, second, meaning)
    assert [(a.event, b.event) for a, b in pairs] == [
        ("refund late", "refund slow"),
        ("login failed", "login broken"),
    ]
    found = agreement(pairs_of(*results), meaning)
    assert list(found.same.values()) == [True]
    assert (found.fields["event"].of, found.fields["event"].exact) == (2, 0)
    assert found.fields["event"].meant == 2
    assert found.fields["severity"].exact == 2


@given(
    st.lists(st.sampled_from("abcdef"), max_size=6), st.lists(st.sampled_from("abcdef"), max_size=6)
)
@settings(max_examples=30)
def test_no_issue_is_matched_twice(first: list[str], second: list[str]) -> None:
    mine, theirs = [issue(name) for name in first], [issue(name) for name in second]
    pairs = match_issues(mine, theirs, Meaning())
    assert len(pairs) == min(len(mine), len(theirs))
    assert len({id(a) for a, _ in pairs}) == len({id(b) for _, b in pairs}) == len(pairs)
    alike = sum(a.event == b.event for a, b in pairs)
    # Equal ones always find one another: as many as the two have in common.
    assert alike == sum(min(first.count(name), second.count(name)) for name in set(first))


def test_another_outcome_or_an_issue_less_is_not_the_same() -> None:
    two = [issue(), issue("login failed", "token expired")]
    first = [result(0, two), result(1, [issue()]), result(2, (), "normal"), result(3, [issue()])]
    second = [
        result(0, two[:1]),
        result(1, (), "normal"),
        result(2, (), "normal"),
        result(3, [issue(cause="disk broken")]),
    ]
    found = agreement(pairs_of(first, second), foreseen_meaning(first, second))
    assert list(found.same.values()) == [False, False, True, False]
    assert (found.fields["outcome"].exact, found.fields["outcome"].of) == (3, 4)
    assert (found.fields["issues"].exact, found.fields["issues"].of) == (2, 4)
    assert found.fields["cause"].meant == 1
    assert {kind: counts["outcome"].of for kind, counts in found.by_kind.items()} == {
        "feedback": 2,
        "operation": 2,
    }


def test_praise_is_compared_by_what_was_praised() -> None:
    praise = {"suggestion": None, "severity": "info"}
    first = [result(0, [issue("staff kind", None, **praise)], "positive")]
    second = [result(0, [issue("staff helpful", None, **praise)], "positive")]
    found = agreement(pairs_of(first, second), foreseen_meaning(first, second))
    assert list(found.same.values()) == [True]
    assert "cause" not in found.fields


def test_a_record_that_one_side_did_not_answer_is_not_compared() -> None:
    first = [result(0), result(1, outcome=None, via="failed"), result(2)]
    second = [result(0), result(1), result(2, outcome=None, via="failed")]
    assert [a.record.text for a, _ in pairs_of(first, second)] == ["record 0"]


@given(st.integers(0, 60), st.integers(1, 60))
@example(0, 25)
def test_bounds_hold_the_share_that_was_seen(hits: int, more: int) -> None:
    of = hits + more
    low, high = wilson(hits, of)
    assert 0 <= low <= hits / of <= high <= 1


def test_the_bound_of_a_difference_is_kept() -> None:
    """Where both shares are the same, a difference is claimed 1 time in 100 at most."""
    random = np.random.default_rng(4)
    claims = sum(
        least_difference(int(first), 60, int(other), 300) > 0
        for first, other in zip(
            random.binomial(60, 0.85, 3000), random.binomial(300, 0.85, 3000), strict=True
        )
    )
    assert claims <= 45


def test_few_pairs_that_differ_prove_nothing() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 0) > 0.01
    assert sign_test(7, 0) < 0.01
    assert sign_test(3, 3) > 0.5


@pytest.mark.parametrize(
    ("failed", "review", "agreed", "word", "reason"),
    [
        (NOTHING, NOTHING, ALL_SAME, "good", "alike"),
        (NOTHING, NOTHING, Agreed(96, 100, 100, 100), "good", "alike"),
        (NOTHING, NOTHING, Agreed(80, 100, 85, 100), "good", "alike"),
        (NOTHING, NOTHING, Agreed(210, 300, 60, 60), "bad", "differs"),
        (NOTHING, NOTHING, Agreed(93, 100, 60, 60), "undecided", "maybe_differs"),
        (NOTHING, NOTHING, Agreed(20, 20, 20, 20), "undecided", "too_few"),
        (Grown(1, 9, 0, 8, 100), NOTHING, ALL_SAME, "bad", "more_failed"),
        (Grown(1, 4, 0, 3, 100), NOTHING, ALL_SAME, "good", "alike"),
        (Grown(9, 1, 8, 0, 100), NOTHING, ALL_SAME, "good", "alike"),
        (NOTHING, Grown(0, 12, 0, 12, 100), ALL_SAME, "bad", "more_review"),
        (Grown(0, 9, 0, 9, 10), NOTHING, Agreed(1, 1, 1, 1), "bad", "more_failed"),
    ],
)
def test_what_follows(failed: Grown, review: Grown, agreed: Agreed, word: str, reason: str) -> None:
    verdict = decide(None, failed, review, agreed)
    assert (verdict.word, verdict.reason) == (word, reason)


@pytest.mark.parametrize(
    ("longest", "short", "word"), [(17, True, "undecided"), (40, False, "good"), (0, False, "good")]
)
def test_packs_that_were_not_as_long_as_those_of_a_run_prove_nothing(
    longest: int, short: bool, word: str
) -> None:
    verdict = decide(None, NOTHING, NOTHING, ALL_SAME, Tried(longest, short))
    assert (verdict.word, verdict.longest) == (word, longest or None)
    assert (verdict.reason == "short_packs") == (word == "undecided")


def test_fading_is_the_first_reason_and_says_where() -> None:
    fade = Fade(position=20, longest=41, before=0.99, after=0.1, p=0.0005)
    agreed = Agreed(40, 100, 60, 60)
    verdict = decide(fade, Grown(0, 30, 0, 30, 100), NOTHING, agreed, Tried(41))
    assert verdict.as_json() == {
        "verdict": "bad",
        "reason": "fades",
        "before": 0.99,
        "after": 0.1,
        "position": 20,
        "longest_pack": 41,
        "records": 100,
    }


def side(name: str, results: Sequence[Result], places: dict[str, Place] | None = None) -> Side:
    return Side(name, results, places or {}, CallCounts(), 60.0)


def test_a_record_that_did_not_come_back_at_its_place_counts_against_it() -> None:
    """Rows lost at the end of a pack are answered when asked again, and still say that packs fade:
    each of them cost a call."""
    results = [result(n) for n in range(120)]
    places = {
        r.record.id: Place(n // 40, n % 40 + 1, 40, came=n % 40 < 30) for n, r in enumerate(results)
    }
    single, packed = side("single", results), side("packed", results, places)
    found = compare(single, packed, single, Meaning())
    assert (found.verdict.word, found.verdict.reason) == ("bad", "fades")
    assert (found.verdict.position, found.verdict.longest) == (31, 40)
    said = found.as_json()
    assert said["agreement"]["same_share"] == 1.0
    assert said["places"]["by_position"][30] == {
        "from": 31,
        "to": 31,
        "of": 3,
        "good": 0,
        "share": 0.0,
        "came": 0,
    }
