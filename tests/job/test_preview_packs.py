"""The packs that are foreseen against those that are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from job.analyse.learning import Learning
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Asking, Call
from job.commands.preview_packs import PlannedPacks
from job.estimates.moments import Moments
from job.pack.packing import Fit
from job.records import Answer, Issue, Record
from serve.ask.limiter import Limits
from serve.ask.settings import Provider
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import dispatcher
from tests.job.make import record
from tests.job.test_dispatch import FAST, day

LIMITS = Limits(max_concurrency=8)


def foreseen(records: Sequence[Record], fit: Fit) -> tuple[list[Call], PlannedPacks]:
    here = Provider(base_url="http://127.0.0.1:1/v1", models=("simulated",))
    ask = AskSettings("simulated", "en")
    size = Learning.about(here, fit, None).size
    packs = PlannedPacks(iter(records), ask, fit, AnswerTokens("en"), size)
    return Asking(LIMITS).run(packs), packs


def a_fit(context: int = 8192) -> Fit:
    return Fit(context, None, instruction_tokens("en"))


@pytest.mark.parametrize("count", [1, 40, 600])
async def test_calls_and_input_tokens_are_those_of_the_run(count: int) -> None:
    records = day(count, tokens=20)
    calls, _ = foreseen(records, a_fit())
    with SimulatedProvider(Settings(**FAST)) as server:
        async with dispatcher(server.base_url) as asking:
            await asking.submit(records)
        stats = server.stats()
    assert len(calls) == pytest.approx(stats["requests"], abs=2)
    tokens_in = sum(call.tokens_in for call in calls)
    assert tokens_in == pytest.approx(stats["prompt_tokens"], rel=0.1)


def test_every_record_is_in_one_pack_of_its_kind_and_lane() -> None:
    records = [
        *day(100),
        *day(50, kind="feedback", source="b"),
        *day(20, lane="slow", source="c"),
    ]
    fit = a_fit()
    calls, packs = foreseen(records, fit)
    assert packs.packs["fast"] + packs.packs["slow"] == len(calls)
    assert packs.packs["slow"] >= 1
    assert sum(moments.n for moments in fit.reserve.own.values()) == len(records)


def test_a_record_too_big_for_a_pack_is_foreseen_in_parts() -> None:
    long = record("the disk of the host is full " * 200, lane="slow")
    calls, _ = foreseen([long], a_fit(1200))
    assert len(calls) > 2
    endless = record("the disk of the host is full " * 3000, lane="slow")
    assert foreseen([endless], a_fit(1200))[0] == []


def test_the_first_request_is_the_one_that_is_shown() -> None:
    _, packs = foreseen(day(3), a_fit())
    assert packs.first is not None
    assert packs.first.user.count("\n") == 2
    assert foreseen([], a_fit())[1].first is None


def test_answers_seen_in_earlier_runs_fill_packs_as_in_the_run() -> None:
    """Long answers leave room for fewer records, from the first pack on."""
    short, long = a_fit(4096), a_fit(4096)
    for _ in range(60):
        short.reserve.observe("operation", "fast", 14)
        long.reserve.observe("operation", "fast", 120)
    few, _ = foreseen(day(200), short)
    many, _ = foreseen(day(200), long)
    assert len(many) > 2 * len(few)


def test_answers_longer_than_there_is_room_for_are_foreseen_to_be_asked_in_halves() -> None:
    fit = a_fit(2048)
    fit.reserve.earlier = {("operation", "fast"): Moments(200, 14.0, 0.0)}
    issue = Issue("it broke", "a cause", "stated", "mend it", "high", None)
    answers = AnswerTokens("en", analyse=lambda record, language: Answer("problem", (issue,) * 3))
    packs = PlannedPacks(iter(day(60)), AskSettings("simulated", "en"), fit, answers)
    calls = Asking(LIMITS).run(packs)
    again = [call for call in calls if call.cls == "retry"]
    assert len(again) >= 4
    asked = sum(answers.records.values()) * (14 + 3 * 51)
    assert asked <= sum(call.tokens_out for call in calls) <= 1.5 * asked


def test_records_wait_as_many_at_a_time_as_in_a_run() -> None:
    read = 0

    def reading() -> Iterator[Record]:
        nonlocal read
        for each in day(40):
            read += 1
            yield each

    packs = PlannedPacks(
        reading(), AskSettings("simulated", "en"), a_fit(), AnswerTokens("en"), held=30
    )
    packs.reserve("fast")
    assert read == 30


SIX_GROUPS = [
    replace(each, kind=kind, lane=lane)
    for kind in ("operation", "feedback", "conversation")
    for lane in ("fast", "slow")
    for each in day(50, source=f"{kind} {lane}")
]


@pytest.mark.parametrize("held", [24, 10_000])
def test_every_record_is_foreseen_where_those_held_fill_no_pack(held: int) -> None:
    fit = a_fit()
    packs = PlannedPacks(
        iter(SIX_GROUPS), AskSettings("simulated", "en"), fit, AnswerTokens("en"), held=held
    )
    calls = Asking(LIMITS).run(packs)
    assert sum(packs.answers.records.values()) == len(SIX_GROUPS)
    assert sum(moments.n for moments in fit.reserve.own.values()) == len(SIX_GROUPS)
    assert len(calls) >= 6


def test_few_slow_records_wait_for_each_other_while_the_fast_ones_fill_packs() -> None:
    records = [
        replace(each, lane="slow") if n % 100 == 0 else each for n, each in enumerate(day(2000))
    ]
    packs = PlannedPacks(
        iter(records), AskSettings("simulated", "en"), a_fit(), AnswerTokens("en"), held=600
    )
    Asking(LIMITS).run(packs)
    assert packs.packs["slow"] == 1
