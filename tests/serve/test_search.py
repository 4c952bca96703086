"""What is found, of what, by whom."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from serve.ask.errors import Misconfigured, Refused
from serve.gateway.searching import check_tenants
from serve.search.embedding import Encoded
from serve.search.errors import BadQuery, NoMeaning
from serve.search.runs import find_runs
from serve.search.served_encoder import ServedEncoder
from serve.search.settings import RunsSettings, SearchSettings
from serve.search.space import PROBE
from tests.serve.search_world import (
    LENGTH,
    Ready,
    World,
    issue,
    leave_run,
    record,
    search_world,
    theme,
    vector_of,
)

ROWS = [
    record(
        "r-order",
        "Order creation failed: no database connection in order-db-pool",
        hour=10,
        outcome="problem",
        issues=(issue("orders fail", "critical", "t-pool", cause="the pool is exhausted"),),
    ),
    record(
        "r-refund",
        "退款三周还没有到账，客服说要人工审批",
        hour=12,
        kind="feedback",
        source="feedback.csv",
        outcome="problem",
        issues=(issue("退款迟迟不到账", "medium", "t-refund"),),
    ),
    record("r-health", "Health check passed", hour=13),
    record("r-health-2", "Health check passed", hour=14, represented_by="r-health"),
    record("r-untimed", "The courier was friendly", hour=None, kind="conversation"),
]
THEMES = [
    theme("t-pool", "Orders fail for want of connections", "critical"),
    theme("t-refund", "Refunds are late", "medium"),
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    leave_run(tmp_path / "retro" / "2026-03-10", ROWS, THEMES)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as made:
        await made.follow()
        yield made


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("failing orders", "t-pool"),  # other forms of the words
        ("order-db-pool", "r-order"),
        ("退款", "r-refund"),
        ("审批", "r-refund"),
        ("款", "r-refund"),  # one character
        ("couriers", "r-untimed"),
    ],
)
async def test_words_of_both_languages_are_found(world: World, query: str, first: str) -> None:
    assert first in (await world.hits(query=query, mode="words"))[:2]


async def test_what_nobody_said_is_not_found_by_words(world: World) -> None:
    assert await world.hits(query="kangaroo 袋鼠", mode="words") == []


async def test_a_hit_tells_where_it_stands(world: World) -> None:
    hit = (await world.answer(query="database connection", what="record"))["hits"][0]
    assert hit["object"] == "record"
    assert (hit["source"], hit["position"], hit["kind"]) == ("app.log", 0, "operation")
    assert hit["time"] == "2026-03-10T10:00:00+00:00"
    assert hit["severity"] == "critical"
    assert [each["id"] for each in hit["themes"]] == ["t-pool"]
    run = (await world.reports())["data"][0]["id"]
    assert hit["report"] == f"/v1/reports/{run}#t-pool"
    marked = [hit["excerpt"][start:end] for start, end in hit["highlights"]]
    assert marked == ["database", "connection"]


async def test_records_of_one_text_are_one_hit_that_counts_them(world: World) -> None:
    hits = (await world.answer(query="health check", mode="words", what="record"))["hits"]
    assert [(hit["id"], hit["like"]) for hit in hits] == [("r-health", 1)]
    late = await world.answer(query="health check", since="2026-03-10T13:30:00Z")
    assert [(hit["id"], hit["like"]) for hit in late["hits"]][:1] == [("r-health-2", 0)]


@pytest.mark.parametrize(
    ("filters", "there"),
    [
        ({"kind": "feedback"}, {"r-refund", "t-refund"}),
        ({"kind": ["feedback", "conversation"]}, {"r-refund", "r-untimed", "t-refund"}),
        ({"severity": "critical"}, {"r-order", "t-pool"}),
        ({"theme": "t-refund"}, {"r-refund", "t-refund"}),
        ({"source": "feed*"}, {"r-refund", "t-refund"}),
        ({"until": "2026-03-10T18:30:00+08:00"}, {"r-order", "t-pool"}),
        (
            {"since": "2026-03-10T12:00:00Z", "until": "2026-03-10T12:00:00Z"},
            {"r-refund", "t-refund"},
        ),
        ({"what": "theme"}, {"t-pool", "t-refund"}),
        ({"what": ["issue"], "severity": ["medium"]}, {"r-refund"}),
        ({"run": "2026-03-10", "kind": "conversation"}, {"r-untimed"}),
        ({"run": "another"}, set()),
        ({"theme": "t-nothing"}, set()),
    ],
)
@pytest.mark.parametrize("mode", ["meaning", "both"])
async def test_filters_let_pass_exactly_what_they_say(
    world: World, filters: dict[str, Any], there: set[str], mode: str
) -> None:
    assert set(await world.hits(query="orders 退款", limit=100, mode=mode, **filters)) == there


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": 7}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "x", "limit": 10.5}, "limit"),
        ({"query": "x", "mode": "magic"}, "mode"),
        ({"query": "x", "mode": ""}, "mode"),
        ({"query": "x", "mode": 0}, "mode"),
        ({"query": "x", "mode": False}, "mode"),
        ({"query": "x", "mode": []}, "mode"),
        ({"query": "x", "source": "x" * 1001}, "source"),
        ({"query": "x", "theme": ["t", "x" * 1001]}, "theme"),
        ({"query": "x", "kind": "poem"}, "kind"),
        ({"query": "x", "severity": []}, "severity"),
        ({"query": "x", "run": [1]}, "run"),
        ({"query": "x", "since": "yesterday"}, "since"),
        ({"query": "x", "since": "2026-03-10T00:00:00"}, "since"),
        ({"query": "x", "since": "2026-02-30T00:00:00Z"}, "since"),
        ({"query": "x", "since": "2026-03-11T00:00:00Z", "until": "2026-03-10T00:00:00Z"}, "since"),
        ({"query": "x", "quarry": "y"}, "quarry"),
    ],
)
async def test_a_query_that_makes_no_sense_names_the_field(
    world: World, body: dict[str, Any], param: str
) -> None:
    with pytest.raises(BadQuery) as caught:
        await world.answer(**body)
    assert caught.value.param == param


async def test_a_whole_number_may_be_written_with_a_point(world: World) -> None:
    assert len(await world.hits(query="health", limit=1.0)) == 1


async def test_brackets_in_a_source_stand_for_themselves(tmp_path: Path) -> None:
    rows = [record("r-1", "a refund", source="app[1].log"), record("r-2", "it", source="app1.log")]
    leave_run(tmp_path / "retro" / "day", rows)
    async with search_world(tmp_path / "retro", state=tmp_path / "index") as world:
        await world.follow()
        assert await world.hits(query="refund", source="app[1]*") == ["r-1"]


async def test_without_the_model_words_are_searched_and_the_answer_says_so(world: World) -> None:
    world.vectors.away = True
    answer = await world.answer(query="refunds")
    assert (answer["meaning"], answer["hits"][0]["id"]) == ("unavailable", "t-refund")
    with pytest.raises(NoMeaning):
        await world.answer(query="refunds are", mode="meaning")


async def test_a_query_that_the_model_refuses_is_searched_by_its_words(world: World) -> None:
    async def refuse(texts: Sequence[str], seconds: float) -> Encoded:
        return Encoded(np.zeros((len(texts), LENGTH), np.float16), vector_of(PROBE))

    world.vectors.encode = refuse  # type: ignore[method-assign]
    answer = await world.answer(query="refunds")
    assert (answer["meaning"], answer["hits"][0]["id"]) == ("unavailable", "t-refund")
    with pytest.raises(NoMeaning, match="refuses"):
        await world.answer(query="refunds are", mode="meaning")


async def test_a_text_that_the_model_refuses_keeps_no_other_from_having_a_vector() -> None:
    asked: list[list[str]] = []

    async def answer(endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        asked.append(body["input"])
        if any("bad" in text for text in body["input"]):
            raise Refused("no", status=400)
        vector = base64.b64encode(np.array([3, 4], dtype="<f4").tobytes()).decode()
        data = [
            {"object": "embedding", "index": n, "embedding": vector}
            for n in range(len(body["input"]))
        ]
        return orjson.dumps({"object": "list", "data": data, "model": "m", "usage": {}})

    encoder = ServedEncoder("m", "m", answer, Ready())
    refused = await encoder.encode(["bad", "bad too"], 1)
    np.testing.assert_array_equal(refused.vectors, np.zeros((2, 2)))
    mixed = (await encoder.encode(["good", "bad"], 1)).vectors
    np.testing.assert_allclose(mixed.astype(float), np.array([[0.6, 0.8], [0, 0]]), atol=1e-3)


async def test_a_tenant_sees_its_own_runs_and_those_of_everybody(tmp_path: Path) -> None:
    for owner in ("a", "b", "all"):
        leave_run(tmp_path / owner / "2026-03-10", [record(f"r-{owner}", "the same words")])
    runs = [
        RunsSettings(path=str(tmp_path / "a"), tenant="team-a"),
        RunsSettings(path=str(tmp_path / "b"), tenant="team-b"),
        RunsSettings(path=str(tmp_path / "all"), tenant="*"),
    ]
    async with search_world(*runs, state=tmp_path / "index") as world:
        await world.follow()
        assert set(await world.hits("team-a", query="the same words")) == {"r-a", "r-all"}
        assert set(await world.hits("team-b", query="the same words")) == {"r-b", "r-all"}
        assert set(await world.hits("team-c", query="the same words")) == {"r-all"}
        assert set(await world.hits("", query="the same words")) == {"r-all"}
        of_b = {run["id"] for run in (await world.reports("team-b"))["data"]}
        of_a = {run["id"] for run in (await world.reports("team-a"))["data"]}
        assert len(of_a) == len(of_b) == 2
        other = (of_b - of_a).pop()
        assert await world.hits("team-a", query="the same words", run=other) == []
        assert (await world.answer("team-a", query="x"))["searched"]["runs"] == 2


async def test_the_nearest_named_folder_says_whose_a_run_is(tmp_path: Path) -> None:
    leave_run(tmp_path / "retro" / "private" / "day", [record("r-private", "secret words")])
    leave_run(tmp_path / "retro" / "day", [record("r-shared", "open words")])
    runs = [
        RunsSettings(path=str(tmp_path / "retro" / "private"), tenant="team-a"),
        RunsSettings(path=str(tmp_path / "retro"), tenant="*"),
    ]
    async with search_world(*runs, state=tmp_path / "index") as world:
        await world.follow()
        assert await world.hits("team-b", query="words") == ["r-shared"]
        assert set(await world.hits("team-a", query="words")) == {"r-shared", "r-private"}


async def test_a_tenant_s_folder_that_cannot_be_listed_is_nobody_else_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "retro" / "private"
    leave_run(private / "day", [record("r-private", "secret words")])
    leave_run(tmp_path / "retro" / "day", [record("r-shared", "open words")])
    runs = [
        RunsSettings(path=str(private), tenant="team-a"),
        RunsSettings(path=str(tmp_path / "retro"), tenant="*"),
    ]
    refused = [str(private)]
    scandir = os.scandir

    def once_refusing(path: str) -> Any:
        if path in refused:
            refused.remove(path)
            raise PermissionError(13, "denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", once_refusing)
    async with search_world(*runs, state=tmp_path / "index") as world:
        await world.follow()
        assert not refused
        assert await world.hits("team-b", query="words") == ["r-shared"]


def test_a_folder_is_not_two_tenants(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "retro")
    entries = [
        RunsSettings(path=str(tmp_path / "retro"), tenant="team-a"),
        RunsSettings(path=str(tmp_path / "link"), tenant="*"),
    ]
    with pytest.raises(ValueError, match="named twice"):
        find_runs(entries)
    with pytest.raises(Misconfigured, match="named twice"):
        check_tenants(SearchSettings(runs=tuple(entries)), open_=False)
