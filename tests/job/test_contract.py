"""The pack contract, row by row (DESIGN 4)."""

from __future__ import annotations

import orjson
import pytest

from job.analyse.contract import (
    Fail,
    Keep,
    Sent,
    Split,
    Stop,
    Together,
    Wait,
    after_error,
    after_reply,
)
from job.pack.packing import Item, make_item
from job.records import Answer
from job.validate import Verdict, validate
from serve.ask.errors import (
    AskError,
    CapReached,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    Refused,
    Unavailable,
)
from tests.job.make import record

PROBLEM = {
    "event": "the disk filled up",
    "cause": "logs were never rotated",
    "basis": "inferred",
    "suggestion": "rotate the logs",
    "severity": "high",
    "quote": "disk is full",
}


def pack(n: int) -> dict[str, Item]:
    return {str(i): make_item(record(f"disk is full on host {i}")) for i in range(1, n + 1)}


def result(key: str, **change: object) -> dict[str, object]:
    return {"id": key, "outcome": "problem", "issues": [{**PROBLEM, **change}]}


def judge(items: dict[str, Item], results: list[dict[str, object]], cut: int = 0) -> Verdict:
    reply = orjson.dumps({"results": results}).decode()
    texts = {key: item.text for key, item in items.items()}
    return validate(reply[: len(reply) - cut], "length" if cut else "stop", texts)


def test_a_good_answer_is_kept() -> None:
    items = pack(2)
    steps = after_reply(items, judge(items, [result("1"), result("2")]), Sent())
    assert [type(step) for step in steps] == [Keep, Keep]


def test_a_cut_answer_keeps_its_whole_objects_and_asks_the_rest_in_halves() -> None:
    items = pack(5)
    verdict = judge(items, [result(str(i)) for i in range(1, 6)], cut=40)
    steps = after_reply(items, verdict, Sent())
    kept = [step.item for step in steps if isinstance(step, Keep)]
    halves = [step.items for step in steps if isinstance(step, Together)]
    assert kept == [items["1"], items["2"], items["3"], items["4"]]
    assert halves == [(items["5"],)]


def test_a_broken_answer_asks_everything_in_halves_never_the_same_pack() -> None:
    items = pack(4)
    verdict = validate("{not json", "stop", {key: item.text for key, item in items.items()})
    steps = after_reply(items, verdict, Sent())
    assert [step.items for step in steps if isinstance(step, Together)] == [
        (items["1"], items["2"]),
        (items["3"], items["4"]),
    ]


def test_a_missing_record_waits_with_others_then_alone_then_fails() -> None:
    items = pack(3)
    lost = items["3"]
    verdict = judge(items, [result("1"), result("2")])
    assert Wait((lost,)) in after_reply(items, verdict, Sent())
    again = {"1": items["1"], "2": lost}
    assert Together((lost,)) in after_reply(again, judge(again, [result("1")]), Sent())
    alone = {"1": lost}
    for _ in range(2):
        assert after_reply(alone, judge(alone, []), Sent()) == [Together((lost,))]
    (step,) = after_reply(alone, judge(alone, []), Sent())
    assert isinstance(step, Fail)
    assert step.reason == "no_usable_answer"


def test_a_doubled_record_is_not_trusted() -> None:
    items = pack(2)
    verdict = judge(items, [result("1"), result("1"), result("2")])
    steps = after_reply(items, verdict, Sent())
    assert Wait((items["1"],)) in steps
    assert verdict.wrong == {"1": "doubled"}


def test_an_invented_record_is_ignored() -> None:
    items = pack(1)
    verdict = judge(items, [result("1"), result("77")])
    assert verdict.invented == 1
    assert [type(step) for step in after_reply(items, verdict, Sent())] == [Keep]


def test_an_empty_required_field_is_asked_for_once_then_reviewed() -> None:
    items = pack(2)
    verdict = judge(items, [result("1"), result("2", cause=None)])
    steps = after_reply(items, verdict, Sent())
    assert Together((items["2"],), repair=True) in steps
    repair = {"1": items["2"]}
    (step,) = after_reply(repair, judge(repair, [result("1", cause="")]), Sent(repair=True))
    assert isinstance(step, Keep)
    assert step.review


def test_a_repair_that_fails_falls_back_on_the_first_answer() -> None:
    item = make_item(record())
    item.draft, item.drafted_by = Answer("problem"), "small"
    kept = [Keep(item, item.draft, True, "small")]
    for error in (Refused("no"), ContextOverflow("long")):
        assert after_error([item], error, Sent(repair=True)) == kept
    item.rounds = 2
    assert after_error([item], Unavailable("down"), Sent(repair=True)) == kept


def test_a_refusal_is_bisected_down_to_the_record_that_caused_it() -> None:
    items = list(pack(3).values())
    refusal = Refused("policy")
    assert after_error(items, refusal, Sent()) == [
        Together((items[0], items[1])),
        Together((items[2],)),
    ]
    assert after_error(items[:1], refusal, Sent()) == [Fail(items[0], "refused", "policy")]


def test_too_long_is_halved_and_a_single_record_is_split() -> None:
    items = list(pack(2).values())
    error = ContextOverflow("too long")
    assert after_error(items, error, Sent()) == [Together((items[0],)), Together((items[1],))]
    assert after_error(items[:1], error, Sent()) == [Split(items[0])]


def test_a_failing_provider_sends_records_to_the_end_and_fails_them_after_three_rounds() -> None:
    items = list(pack(2).values())
    error = Unavailable("down")
    for _ in range(2):
        assert after_error(items, error, Sent()) == [Wait(tuple(items), last=True)]
    steps = after_error(items, error, Sent())
    assert [type(step) for step in steps] == [Fail, Fail]


@pytest.mark.parametrize(
    "error", [Misconfigured("bad key"), QuotaExhausted("nothing left"), CapReached("at the cap")]
)
def test_what_no_retry_helps_stops_the_run(error: AskError) -> None:
    items = list(pack(2).values())
    assert after_error(items, error, Sent()) == [Stop(tuple(items), error)]


def test_a_single_record_with_no_room_left_fails_instead_of_repeating_its_bytes() -> None:
    items = pack(1)
    verdict = judge(items, [result("1")], cut=30)
    (step,) = after_reply(items, verdict, Sent(room_left=False))
    assert isinstance(step, Fail)
    assert step.reason == "answer_cut_off"
