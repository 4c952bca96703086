"""Faults of the simulated provider: scheduled, by chance, and what they do to an answer."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import httpx
import pytest

from serve.simulated import FaultKind, Settings, seeded_schedule
from serve.simulated_faults import FaultPlan
from serve.simulated_settings import RECORD_FAULTS, TEXT_FAULTS, TRANSPORT_FAULTS
from tests.serve.simulated_requests import analysis, calling, chat, content, error, results

TEXTS = [f"{i}: connection refused" for i in range(20)]
ALL = TRANSPORT_FAULTS | TEXT_FAULTS | RECORD_FAULTS


def good_counts(stats: dict[str, Any]) -> Counter[int]:
    """How many records have how many good answers."""
    return Counter(stats["good_answers"].values())


def test_a_fault_strikes_the_request_of_its_number() -> None:
    with calling(fault_schedule={2: "server_error", 4: "rate_limit"}) as caller:
        statuses = [caller.post(chat("x")).status_code for _ in range(5)]
        stats = caller.provider.stats()
    assert [s == 200 for s in statuses] == [True, False, True, False, True]
    assert statuses[1] in (500, 502, 503)
    assert statuses[3] == 429
    assert stats["by_fault"] == {"server_error": 1, "rate_limit": 1}


def test_server_errors_differ_and_not_all_are_json() -> None:
    with calling(fault_shares={"server_error": 1.0}) as caller:
        replies = [caller.post(chat("x")) for _ in range(30)]
    assert {r.status_code for r in replies} == {500, 502, 503}
    for reply in replies:
        if reply.status_code == 502:
            assert reply.headers["content-type"] == "text/html"
        else:
            assert error(reply)["type"] == "server_error"


def test_connections_are_lost_in_three_ways_and_nothing_counts_as_answered() -> None:
    with calling(fault_schedule={1: "reset", 2: "reset", 3: "reset"}) as caller:
        with pytest.raises(httpx.ReadError):
            caller.post(analysis(TEXTS))
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            caller.post(analysis(TEXTS))
        with pytest.raises(httpx.RemoteProtocolError, match="complete message body"):
            caller.post(analysis(TEXTS))
        stats = caller.provider.stats()
    assert stats["by_status"] == {"none": 3}
    assert stats["by_fault"] == {"reset": 3}
    assert (stats["answers"], stats["good_answers"]) == (0, {})


def test_a_stream_can_be_lost_in_the_middle() -> None:
    with calling(fault_schedule={1: "reset", 2: "reset", 3: "reset"}) as caller:
        for _ in range(2):
            with pytest.raises(httpx.TransportError):
                caller.post(chat("x"))
        with (
            caller.client.stream("POST", "/chat/completions", json=chat("x", stream=True)) as reply,
            pytest.raises(httpx.RemoteProtocolError),
        ):
            reply.read()


def test_a_hanging_call_never_answers_and_ends_when_the_client_gives_up() -> None:
    with calling(fault_schedule={1: "hang"}, hang_seconds=1e6) as caller:
        with pytest.raises(httpx.ReadTimeout):
            caller.client.post("/chat/completions", json=chat("x"), timeout=0.05)
        assert caller.post(chat("x")).status_code == 200
        stats = caller.provider.stats()
    assert stats["by_fault"] == {"hang": 1}


def test_a_call_that_hangs_too_long_is_dropped() -> None:
    settings: dict[str, Any] = {"fault_schedule": {1: "hang"}, "hang_seconds": 10}
    with calling(**settings) as caller, pytest.raises(httpx.RemoteProtocolError):
        caller.post(chat("x"))


def test_a_cut_answer_says_length_and_is_good_for_what_is_whole() -> None:
    body = analysis(TEXTS)
    with calling(fault_schedule={1: "cut"}) as caller:
        reply = caller.post(body)
        caller.post(body)
        stats = caller.provider.stats()
    text = content(reply)
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    whole = text.count("]}")
    assert 0 < whole < len(TEXTS)
    assert good_counts(stats) == {2: whole, 1: len(TEXTS) - whole}
    assert stats["repeated_after_length"] == 1


def test_a_malformed_answer_is_no_json_and_says_stop() -> None:
    with calling(fault_shares={"malformed": 1.0}) as caller:
        replies = [caller.post(analysis(TEXTS)) for _ in range(12)]
        stats = caller.provider.stats()
    for reply in replies:
        assert reply.json()["choices"][0]["finish_reason"] == "stop"
        with pytest.raises(json.JSONDecodeError):
            json.loads(content(reply))
    endings = {content(reply).endswith("]}]}") for reply in replies}
    assert endings == {True, False}, "some end early, some are broken in the middle"
    assert max(stats["good_answers"].values()) <= 12


def test_missing_doubled_and_invented_ids() -> None:
    with calling(fault_schedule={1: "missing", 2: "doubled", 3: "invented"}) as caller:
        missing, doubled, invented = [
            [r["id"] for r in results(caller.post(analysis(TEXTS)))] for _ in range(3)
        ]
        stats = caller.provider.stats()
    sent = {str(i) for i in range(1, 21)}
    assert len(missing) == 18
    assert set(missing) < sent
    assert sorted(Counter(doubled).values()) == [1] * 18 + [2] * 2
    assert len(invented) == 20
    assert len(set(invented) - sent) == 2
    good = sum(stats["good_answers"].values())
    assert good == 3 * 18


def test_a_single_record_can_be_struck_too() -> None:
    with calling(fault_schedule={1: "missing", 2: "doubled", 3: "invented"}) as caller:
        ids = [[r["id"] for r in results(caller.post(analysis(["x"])))] for _ in range(3)]
        stats = caller.provider.stats()
    assert ids == [[], ["1", "1"], ["2"]]
    assert stats["good_answers"] == {}


def test_a_fault_waits_for_a_request_that_it_suits() -> None:
    with calling(fault_schedule={1: "missing", 2: "malformed"}) as caller:
        plain = caller.post(chat("x"))
        waiting = caller.provider.stats()
        first, second = caller.post(analysis(TEXTS)), caller.post(analysis(TEXTS))
        stats = caller.provider.stats()
    assert plain.status_code == 200
    assert (waiting["by_fault"], waiting["pending_faults"]) == ({}, 2)
    assert len(results(first)) == 18
    with pytest.raises(json.JSONDecodeError):
        results(second)
    assert stats["pending_faults"] == 0


def test_poison_refuses_the_whole_request_and_names_no_record() -> None:
    with calling(poison=["毒 phrase"]) as caller:
        refused = caller.post(analysis(["fine", "a 毒 phrase here"]))
        fine = caller.post(analysis(["fine"]))
        stats = caller.provider.stats()
    assert refused.status_code == 400
    assert error(refused)["code"] == "content_policy_violation"
    assert error(refused)["param"] is None
    assert "phrase" not in refused.text
    assert fine.status_code == 200
    assert stats["by_fault"] == {"poison": 1}
    assert stats["records_seen"] == 2


def test_poison_is_found_behind_escapes() -> None:
    user = json.dumps({"id": "1", "text": "一句毒话"}, ensure_ascii=True)
    with calling(poison=["毒话"]) as caller:
        assert caller.post(chat(user)).status_code == 400


def test_poison_can_be_a_refusal_in_the_answer() -> None:
    with calling(poison=["bad"], poison_as="refusal") as caller:
        reply = caller.post(analysis(["bad"]))
        stats = caller.provider.stats()
    message = reply.json()["choices"][0]["message"]
    assert reply.status_code == 200
    assert message["content"] is None
    assert message["refusal"]
    assert stats["good_answers"] == {}


@pytest.mark.parametrize("way", ["503", "reset"])
def test_an_outage_is_counted_from_the_first_request(way: str) -> None:
    # a simulated second is a real millisecond
    settings: dict[str, Any] = {"outages": [(0.5, 400)], "outage_as": way, "latency": [(1, 2.0)]}
    with calling(**settings) as caller:
        assert caller.post(chat("x")).status_code == 200
        outcomes: list[int] = []
        while 200 not in outcomes:
            try:
                outcomes.append(caller.post(chat("x")).status_code)
            except httpx.TransportError:
                outcomes.append(0)
            assert len(outcomes) < 5000
        stats = caller.provider.stats()
    assert outcomes[0] == (503 if way == "503" else 0)
    assert stats["by_fault"] == {"outage": len(outcomes) - 1}
    assert stats["admitted"] == 2, "a request in an outage has no number"


def test_chance_follows_the_shares_and_the_seed() -> None:
    shares: dict[FaultKind, float] = {"server_error": 0.1, "missing": 0.3}

    def drawn(seed: int) -> list[FaultKind | None]:
        plan = FaultPlan(shares, {}, seed)
        return [plan.draw(ALL) for _ in range(2000)]

    counts = Counter(drawn(1))
    assert 150 <= counts["server_error"] <= 250
    assert 500 <= counts["missing"] <= 700
    assert drawn(1) == drawn(1) != drawn(2)


def test_a_seeded_schedule_has_the_shares_and_at_least_so_many() -> None:
    shares: dict[FaultKind, float] = dict.fromkeys(ALL, 0.01) | {"server_error": 0.1}
    schedule = seeded_schedule(shares, 120, at_least=3, seed=7)
    counts = Counter(schedule.values())
    assert counts == dict.fromkeys(ALL, 3) | {"server_error": 12}
    assert all(1 <= number <= 120 for number in schedule)
    assert seeded_schedule(shares, 120, at_least=3, seed=7) == schedule
    assert seeded_schedule(shares, 120, at_least=3, seed=8) != schedule
    assert Settings(fault_schedule=schedule).fault_schedule == schedule
    with pytest.raises(ValueError, match="do not fit"):
        seeded_schedule(shares, 20, at_least=3)
