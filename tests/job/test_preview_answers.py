"""How many tokens answers are taken to need before any was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from job.commands.preview_answers import EACH, ISSUE_TOKENS, RESULT_TOKENS, AnswerTokens
from job.commands.preview_naming import naming_calls
from job.commands.preview_numbers import SEEN_SECONDS, Range, around_of, foresee
from job.estimates.around import Around, NamingTaken, RunAround
from job.estimates.kept import Earlier, Repeats
from job.estimates.moments import Moments
from job.instructions import Language
from job.records import Answer, Issue, Record
from serve.ask.limiter import Limits
from tests.job.make import record
from tests.job.test_preview_asking import call

ISSUE = Issue("it broke", "a cause", "stated", "mend it", "high", None)


def analyst(record: Record, language: Language) -> Answer:
    problems = record.text.count("broken")
    return Answer("problem", (ISSUE,) * problems) if problems else Answer("normal")


def test_the_guess_counts_what_the_built_in_analyst_finds() -> None:
    answers = AnswerTokens("en", analyse=analyst)
    assert answers.of(record("all well")) == RESULT_TOKENS
    assert answers.of(record("broken and broken")) == RESULT_TOKENS + 2 * ISSUE_TOKENS["en"][0]
    assert answers.guessed == 2
    assert answers.issues == 2


def test_earlier_runs_go_before_the_guess_where_they_saw_enough() -> None:
    earlier = {("operation", "fast"): Moments(200, 33.0, 0.0), ("operation", "slow"): Moments(3, 9)}
    answers = AnswerTokens("en", earlier, analyst)  # type: ignore[arg-type]
    assert answers.of(record("broken")) == 33.0
    assert answers.of(record("all well", lane="slow")) == RESULT_TOKENS
    assert answers.guessed == 1


def test_of_very_many_records_only_some_are_looked_at() -> None:
    looked = 0

    def counting(record: Record, language: Language) -> Answer:
        nonlocal looked
        looked += 1
        return analyst(record, language)

    answers = AnswerTokens("en", analyse=counting)
    each = record("broken")
    total = sum(answers.of(each) for _ in range(10 * EACH))
    assert looked < 2 * EACH
    assert total == pytest.approx(10 * EACH * (RESULT_TOKENS + ISSUE_TOKENS["en"][0]))
    assert answers.issues == 10 * EACH


def test_naming_is_foreseen_from_the_issues_or_as_it_was_seen() -> None:
    assert naming_calls(0, "en", None) == []
    assert len(naming_calls(9, "en", None)) == 1
    assert len(naming_calls(10**6, "zh", None)) == 6
    seen = naming_calls(50, "en", NamingTaken(4.0, 4000.0, 1200.0, 3.0))
    assert (len(seen), sum(one.tokens_in for one in seen)) == (4, 4000.0)


def foreseen(earlier: Earlier, records: int = 100) -> tuple[Range, Range, Range]:
    answers = AnswerTokens("en", earlier.answers, analyst)
    for _ in range(records):
        answers.of(record("broken"))
    sent = [call("fast", 5000, 3.0)] * 5
    taken = foresee(sent, [], Limits(), answers, earlier, Range(20.0, 10.0, 40.0))
    return taken.tokens_in, taken.tokens_out, taken.whole


def test_every_range_holds_what_is_expected_and_narrows_with_earlier_runs() -> None:
    known = {("operation", "fast"): Moments(200, 60.0, 200 * 100.0)}
    earlier = Earlier(1, known, {}, Moments(30, 1.0), Moments(100, 1.0))  # type: ignore[arg-type]
    first, second = foreseen(Earlier()), foreseen(earlier)
    for guess, seen in zip(first, second, strict=True):
        for about, low, high in (guess, seen):
            assert low <= about <= high
        assert (seen.high - seen.low) / seen.about < (guess.high - guess.low) / guess.about


def test_runs_that_lie_far_apart_widen_the_range() -> None:
    known = {("operation", "fast"): Moments(200, 60.0, 200 * 100.0)}
    calm = Earlier(3, known, {}, Moments(30, 1.0), Moments(), spread=0.02)  # type: ignore[arg-type]
    wild = Earlier(3, known, {}, Moments(30, 1.0), Moments(), spread=0.5)  # type: ignore[arg-type]
    assert foreseen(wild)[1].high > 1.5 * foreseen(calm)[1].high


def test_records_asked_twice_as_a_rule_cost_twice() -> None:
    again = Earlier(1, ratio=Moments(30, 1.0), again=Moments(100, 2.0))
    once = Earlier(1, ratio=Moments(30, 1.0), again=Moments(100, 1.0))
    assert foreseen(again)[0].about == pytest.approx(2 * foreseen(once)[0].about)


def test_repairs_and_halves_are_foreseen_as_calls_of_their_own() -> None:
    repeats = Repeats(Moments(30, 0.4), Moments(12, 700.0), Moments(12, 90.0))
    once = Earlier(1, ratio=Moments(30, 1.0))
    more = Earlier(1, ratio=Moments(30, 1.0), repeats=repeats)
    assert foreseen(more)[0].about == pytest.approx(foreseen(once)[0].about + 2 * 700)


def test_what_models_hand_on_is_foreseen_as_it_was_seen() -> None:
    answers = AnswerTokens("en", analyse=analyst)
    repeats = Repeats(Moments(30, 0.5), Moments(12, 700.0), Moments(12, 90.0))
    earlier = Earlier(1, ratio=Moments(30, 1.0), repeats=repeats)
    sent = [
        replace(call("fast", 5000, 3.0), model=model) for model in ("small",) * 8 + ("big",) * 2
    ]
    around, models = Range(20.0, 10.0, 40.0), ("small", "big")
    unseen, seen = (
        foresee(sent, [], Limits(), answers, earlier, around, models=models, handed_on=handed_on)
        for handed_on in ({}, {"small": 0.05, "big": 0.0})
    )
    assert seen.tokens_in.about == pytest.approx(unseen.tokens_in.about), "it is asked again anyway"
    small, big = (seen.by_model[model][0].about for model in models)
    assert small < unseen.by_model["small"][0].about
    assert big > unseen.by_model["big"][0].about
    every = seen.by_model["small"][0], seen.by_model["big"][0]
    assert all(one.low <= one.about <= one.high for one in every)


def test_around_the_calls_goes_by_earlier_runs_or_by_what_the_plan_itself_took() -> None:
    assert around_of(Around(), 1000, 30.0).about == 30.0
    seen = Around((RunAround("a", 1.0, 1000, 12.0, 0, 0, 0, 0.0),))
    assert around_of(seen, 1000, 30.0).about == pytest.approx(12.0)
    assert SEEN_SECONDS[0] < 1 < SEEN_SECONDS[1]
