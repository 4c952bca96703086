"""What is counted of a request, as Prometheus reads it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from serve.ask.contract import Usage
from serve.gateway.contract import Answered, Call, Caller, Endpoint, Target, Task
from serve.gateway.settings import GatewaySettings
from serve.metrics import Metrics
from serve.metrics import metrics as module
from serve.metrics.board import STALE_SECONDS, Board
from serve.metrics.families import IN_FLIGHT, RECHECKS, SECONDS
from serve.metrics.metrics import MOST_TENANTS, OTHER
from serve.metrics.numbers import Histogram, Snapshot
from serve.metrics.prometheus import render
from serve.metrics_actor import board_name

SETTINGS = GatewaySettings.model_validate(
    {"providers": {"main": {"base_url": "http://127.0.0.1:1/v1", "models": ["large", "small"]}}}
)
CHAT: Endpoint = "chat/completions"
CALL = Call(CHAT, {}, Caller("app", "shop"), "r1", "large", False, 10, 60.0)
ASKED = Answered(
    target=Target("main", "large"),
    usage=Usage(100, 21, 40),
    cost=Decimal("0.0125"),
    currency="USD",
    cache="miss",
    finish_reason="stop",
    attempts=1,
    queued=0.25,
    sent=0.26,
    first_byte=0.76,
    last_byte=1.76,
)

Found = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


async def read(metrics: Metrics) -> Found:
    return parsed(await metrics.render())


def parsed(text: bytes) -> Found:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(found: Found, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


async def test_a_request_is_counted_with_all_it_took() -> None:
    metrics = Metrics(SETTINGS)
    metrics.observe(CHAT, 200, CALL, ASKED, 1.7605)
    found = await read(metrics)
    model = {"provider": "main", "model": "large"}
    assert value(found, "fupan_requests_total", endpoint=CHAT, status="200") == 1
    assert value(found, "fupan_cache_total", endpoint=CHAT, result="miss") == 1
    sums = {
        "fupan_request_seconds": 1.7605,
        "fupan_queue_seconds": 0.25,
        "fupan_gateway_seconds": 0.01,
        "fupan_serialise_seconds": 0.0005,
    }
    for name, seconds in sums.items():
        assert math.isclose(value(found, f"{name}_sum", endpoint=CHAT), seconds, rel_tol=1e-6)
        assert value(found, f"{name}_count", endpoint=CHAT) == 1
    assert value(found, "fupan_upstream_first_byte_seconds_sum", **model) == 0.5
    assert value(found, "fupan_upstream_last_byte_seconds_sum", **model) == 1.5
    assert value(found, "fupan_time_to_first_token_seconds_count", **model) == 0
    for kind, tokens in {"in": 100, "out": 21, "cached": 40}.items():
        assert value(found, "fupan_tokens_total", kind=kind, **model) == tokens
    assert value(found, "fupan_cost_total", currency="USD", **model) == 0.0125
    assert value(found, "fupan_tenant_cost_total", tenant="shop", currency="USD") == 0.0125
    assert value(found, "fupan_tenant_tokens_total", tenant="shop", kind="out") == 21
    assert value(found, "fupan_tenant_requests_total", tenant="shop", status="200") == 1


async def test_a_stream_says_how_fast_its_tokens_came() -> None:
    metrics = Metrics(SETTINGS)
    metrics.observe(CHAT, 200, replace(CALL, stream=True), replace(ASKED, first_token=0.86), 1.77)
    found = await read(metrics)
    model = {"provider": "main", "model": "large"}
    assert value(found, "fupan_time_to_first_token_seconds_sum", **model) == 0.86
    per_token = value(found, "fupan_time_per_output_token_seconds_sum", **model)
    assert math.isclose(per_token, 0.045)


async def test_an_answer_that_was_kept_bills_nothing() -> None:
    metrics = Metrics(SETTINGS)
    kept = Answered(target=Target("main", "large"), cost=Decimal(0), cache="exact")
    joined = replace(ASKED, cache="joined", cost=Decimal(0), attempts=0)
    for about in (kept, joined):
        metrics.observe(CHAT, 200, CALL, about, 0.0004)
    found = await read(metrics)
    assert value(found, "fupan_cache_total", endpoint=CHAT, result="exact") == 1
    assert value(found, "fupan_cache_total", endpoint=CHAT, result="joined") == 1
    assert value(found, "fupan_gateway_seconds_bucket", endpoint=CHAT, le="0.0005") == 2
    assert value(found, "fupan_tokens_total", provider="main", model="large", kind="in") == 0
    assert not any(name.startswith("fupan_cost") for name, _ in found)


async def test_cut_answers_are_told_by_task() -> None:
    metrics = Metrics(SETTINGS)
    task = replace(CALL, task=Task("summary", 400, 45.0))
    for reason in ("stop", "length", "length"):
        metrics.observe(CHAT, 200, task, replace(ASKED, finish_reason=reason), 1.0)
    metrics.observe(CHAT, 200, CALL, replace(ASKED, finish_reason="length"), 1.0)
    found = await read(metrics)
    assert value(found, "fupan_answers_total", task="summary") == 3
    assert value(found, "fupan_cut_answers_total", task="summary") == 2
    assert value(found, "fupan_cut_answers_total", task="(none)") == 1


async def test_a_failure_counts_and_says_nothing_of_times_it_did_not_have() -> None:
    metrics = Metrics(SETTINGS)
    metrics.observe(CHAT, 503, CALL, Answered(), 0.002)
    metrics.observe(CHAT, 400, None, Answered(), 0.001)
    metrics.observe(CHAT, 200, CALL, replace(ASKED, attempts=3), 9.0)
    found = await read(metrics)
    assert value(found, "fupan_requests_total", endpoint=CHAT, status="503") == 1
    assert value(found, "fupan_request_seconds_count", endpoint=CHAT) == 3
    assert value(found, "fupan_queue_seconds_count", endpoint=CHAT) == 1
    assert value(found, "fupan_gateway_seconds_count", endpoint=CHAT) == 0
    assert value(found, "fupan_retries_total", provider="main", model="large") == 2


async def test_labels_are_bounded_whatever_comes() -> None:
    metrics = Metrics(SETTINGS)
    for number in range(MOST_TENANTS + 50):
        call = replace(CALL, name=f"made-up-{number}", caller=Caller("k", f"tenant-{number}"))
        about = replace(ASKED, target=Target("main", f"made-up-{number}"))
        metrics.observe(CHAT, 200, call, about, 1.0)
    text = await metrics.render()
    found = parsed(text)
    assert b"made-up" not in text
    assert value(found, "fupan_tokens_total", provider=OTHER, model=OTHER, kind="in") == 25_000
    tenants = {
        dict(labels)["tenant"] for name, labels in found if name == "fupan_tenant_requests_total"
    }
    assert len(tenants) == MOST_TENANTS + 1
    assert value(found, "fupan_tenant_requests_total", tenant=OTHER, status="200") == 50


async def test_what_others_count_is_read_when_it_is_shown() -> None:
    metrics = Metrics(SETTINGS)
    held = {"in_flight": 3.0}
    metrics.watch(IN_FLIGHT, lambda: {(): held["in_flight"]})
    metrics.watch(RECHECKS, lambda: {("near", "wrong"): 2.0, ("near", "right"): 98.0})
    assert value(await read(metrics), "fupan_requests_in_flight") == 3
    held["in_flight"] = 0.0
    found = await read(metrics)
    assert value(found, "fupan_requests_in_flight") == 0
    assert value(found, "fupan_cache_rechecks_total", cache="near", result="wrong") == 2


class Cluster:
    """A board that replicas share; `away`: it cannot be asked."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.away = False

    async def exchange(self, replica: str, snapshot: Snapshot) -> Mapping[str, Snapshot]:
        if self.away:
            raise ConnectionError
        return self._board.exchange(replica, snapshot)


async def test_each_replica_tells_what_all_have_measured() -> None:
    now = 0.0
    cluster = Cluster(Board(clock=lambda: now))
    one, two = (Metrics(SETTINGS, cluster) for _ in range(2))
    for _ in range(3):
        one.observe(CHAT, 200, CALL, ASKED, 1.0)
    two.observe(CHAT, 200, CALL, ASKED, 1.0)
    await one.render()

    def requests(found: Found) -> list[float]:
        return sorted(v for (name, _), v in found.items() if name == "fupan_requests_total")

    assert requests(await read(two)) == [1, 3]
    assert requests(await read(one)) == [1, 3]
    now += STALE_SECONDS
    two.observe(CHAT, 200, CALL, ASKED, 1.0)
    assert requests(await read(two)) == [2]
    cluster.away = True
    assert requests(await read(two)) == [2]


async def test_a_board_that_hangs_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def exchange(self, replica: str, snapshot: Snapshot) -> Mapping[str, Snapshot]:
            await asyncio.Event().wait()
            return {}

    monkeypatch.setattr(module, "EXCHANGE_SECONDS", 0.01)
    metrics = Metrics(SETTINGS, Hanging())
    metrics.observe(CHAT, 200, CALL, ASKED, 1.0)
    async with asyncio.timeout(60):
        found = await read(metrics)
    assert [v for (name, _), v in found.items() if name == "fupan_requests_total"] == [1]


def test_numbers_of_a_replica_that_counts_otherwise_are_left_out() -> None:
    ours = Histogram(SECONDS.bounds)
    ours.observe(1)
    other: Snapshot = {
        SECONDS.name: [((CHAT,), [1, 2, 3]), ((CHAT, "another label"), ours.numbers())],
        "fupan_requests": [((CHAT,), [1])],
        "fupan_of_tomorrow": [((), [1])],
    }
    found = parsed(render({"old": other, "new": {SECONDS.name: [((CHAT,), ours.numbers())]}}))
    assert {dict(labels)["replica"] for _, labels in found} == {"new"}


def test_boards_are_shared_by_replicas_of_one_application_and_version() -> None:
    names = {board_name("a"), board_name("b"), board_name("a", "another"), board_name("a")}
    assert len(names) == 3


async def test_replicas_post_by_themselves_until_they_are_closed() -> None:
    board = Board()
    metrics = Metrics(SETTINGS, Cluster(board))
    metrics.observe(CHAT, 200, CALL, ASKED, 1.0)
    await metrics.start()
    other = Metrics(SETTINGS, Cluster(board))
    while "1.0" not in (await other.render()).decode():
        pass
    await metrics.aclose()


@given(st.lists(st.floats(0, 1e6), max_size=30), st.lists(st.floats(0, 1e6), max_size=30))
def test_buckets_hold_what_was_observed(one: list[float], two: list[float]) -> None:
    snapshots: dict[str, Snapshot] = {}
    for name, values in {"a": one, "b": two}.items():
        histogram = Histogram(SECONDS.bounds)
        for each in values:
            histogram.observe(each)
        snapshots[name] = {SECONDS.name: [((CHAT,), histogram.numbers())]}
    found = parsed(render(snapshots))
    for replica, values in {"a": one, "b": two}.items():
        labels = {"endpoint": CHAT, "replica": replica}
        for bound in SECONDS.bounds:
            within = sum(each <= bound for each in values)
            shown = value(found, f"{SECONDS.name}_bucket", le=str(bound), **labels)
            assert shown == within
        assert value(found, f"{SECONDS.name}_bucket", le="+Inf", **labels) == len(values)
        assert value(found, f"{SECONDS.name}_count", **labels) == len(values)
        assert math.isclose(value(found, f"{SECONDS.name}_sum", **labels), sum(values))


@pytest.mark.parametrize("name", ['quo"te', "new\nline", "back\\slash", "中文"])
async def test_any_name_of_a_tenant_is_escaped(name: str) -> None:
    metrics = Metrics(SETTINGS)
    metrics.observe(CHAT, 200, replace(CALL, caller=Caller("k", name)), ASKED, 1.0)
    found: Any = await read(metrics)
    assert value(found, "fupan_tenant_requests_total", tenant=name, status="200") == 1
