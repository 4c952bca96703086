"""`POST /v1/analyze`: all parts at once, each failure its own."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web

from serve.gateway.analysis import PARTS
from serve.gateway.keys import digest_of
from serve.simulated import Settings, SimulatedProvider
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import Planned, Upstream, completion, refused
from tests.serve.simulated_requests import TRUTH

DOCUMENT = "客服：您好。用户：我付款失败了两次，订单也丢了，非常生气。"
ISSUE = {
    "event": "付款失败且订单丢失",
    "cause": "支付服务异常",
    "basis": "inferred",
    "suggestion": "补回订单并检查支付服务",
    "severity": "high",
    "quote": "付款失败了两次",
}
GOOD: dict[str, dict[str, Any]] = {
    "keywords": {"keywords": ["付款", "订单"]},
    "summary": {"summary": "用户付款失败，订单丢失。"},
    "difficulty": {"level": 2, "reason": "需要查支付记录。"},
    "retrospective": {"outcome": "problem", "issues": [ISSUE]},
}
PRICES = {"currency": "CNY", "input": 2, "output": 10}


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    keys = tmp_path_factory.mktemp("keys") / "keys.yaml"
    keyed: dict[str, dict[str, Any]] = {
        "web": {},
        "two": {"rpm": 2},
        "six": {"rpm": 6},
        "poor": {"max_spend": "0.000001", "currency": "CNY"},
        "narrow": {"models": ["other"]},
    }
    lines = [
        {"name": name, "tenant": "t", "sha256": digest_of(f"fp-{name}"), **limits}
        for name, limits in keyed.items()
    ]
    keys.write_bytes(orjson.dumps(lines))
    providers = {"main": provider_at(upstream.url, context=4_000, prices=PRICES)}
    with gateway_world(providers, {"keys": str(keys), "timeout": 8}) as world:
        yield world


@pytest.fixture
def http(world: World, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.begin_anew()
    upstream.bodies.clear()
    with httpx.Client(base_url=world.url, timeout=60) as client:
        yield client


def analyze(http: httpx.Client, key: str = "web", **body: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer fp-{key}"}
    return http.post("/v1/analyze", json={"text": DOCUMENT, **body}, headers=headers)


def part_of(body: Mapping[str, Any]) -> str:
    """Which part a request to the provider is about."""
    if "response_format" in body and "json_schema" in body["response_format"]:
        return str(body["response_format"]["json_schema"]["name"])
    names = {"关键词": "keywords", "概括": "summary", "难度": "difficulty", "复盘": "retrospective"}
    said = body["messages"][0]["content"]
    return next(part for word, part in names.items() if word in said)


def answering(answers: Mapping[str, Any], together: int = 0) -> Planned:
    """Each part its answer; `together`: not before so many have been asked for."""
    arrived = 0
    all_here: asyncio.Event | None = None

    async def planned(request: web.Request) -> web.StreamResponse:
        nonlocal arrived, all_here
        all_here = all_here or asyncio.Event()
        arrived += 1
        if arrived >= together:
            all_here.set()
        await all_here.wait()
        answer = answers[part_of(orjson.loads(await request.read()))]
        if callable(answer):
            failed: web.StreamResponse = await answer(request)
            return failed
        text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        return web.json_response(completion(text))

    return planned


def plan(upstream: Upstream, answers: Mapping[str, Any], together: int = 0) -> None:
    upstream.planned.extend([answering(answers, together)] * 20)


def test_all_parts_are_asked_at_once_and_summed(http: httpx.Client, upstream: Upstream) -> None:
    # The provider answers none of them before all four are there: one after the other would never
    # end, so that four calls of three seconds take three.
    plan(upstream, GOOD, together=4)
    answer = analyze(http, kind="conversation")
    assert answer.status_code == 200
    assert answer.json() == {
        "object": "analysis",
        "model": "main/simulated",
        "language": "zh",
        "keywords": ["付款", "订单"],
        "summary": "用户付款失败，订单丢失。",
        "difficulty": {"level": 2, "reason": "需要查支付记录。"},
        "retrospective": {"outcome": "problem", "issues": [ISSUE]},
        "errors": {},
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 12,
            "total_tokens": 32,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        "cost": "0.00016",
        "currency": "CNY",
    }
    assert answer.headers["x-fupan-cost"] == "0.00016 CNY"
    for body in upstream.bodies:
        system, user = body["messages"]
        assert orjson.loads(user["content"]) == {"text": DOCUMENT}
        assert "付款" not in system["content"]
        assert "对话" in system["content"]


def test_only_the_parts_that_are_wanted_are_asked_for(
    http: httpx.Client, upstream: Upstream
) -> None:
    plan(upstream, GOOD)
    answer = analyze(http, parts=["summary"], language="en").json()
    assert answer["language"] == "en"
    assert "keywords" not in answer
    assert upstream.calls == 1
    assert "English" in upstream.bodies[0]["messages"][0]["content"]


def test_auto_chooses_by_the_document_alone(upstream: Upstream) -> None:
    upstream.begin_anew()
    upstream.bodies.clear()
    plan(upstream, GOOD)
    two = provider_at(upstream.url, models=["simulated", "other"])
    auto = {"fast": "main/simulated", "powerful": "main/other"}
    with (
        gateway_world({"main": two}, {"auto": auto}) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        assert analyze(http).json()["model"] == "main/simulated"
        assert {body["model"] for body in upstream.bodies} == {"simulated"}
        hard = {"text": "Prove that the algorithm is optimal.", "model": "auto"}
        assert analyze(http, parts=["summary"], **hard).json()["model"] == "main/other"


def test_what_fails_of_one_part_is_that_parts_alone(http: httpx.Client, upstream: Upstream) -> None:
    answers = {
        **GOOD,
        "summary": refused(400, "not this", code="content_policy"),
        "difficulty": "I would rather not.",
    }
    plan(upstream, answers, together=4)
    answer = analyze(http)
    assert answer.status_code == 200
    came = answer.json()
    assert came["keywords"] == ["付款", "订单"]
    assert came["retrospective"]["outcome"] == "problem"
    assert (came["summary"], came["difficulty"]) == (None, None)
    assert {part: error["code"] for part, error in came["errors"].items()} == {
        "summary": "content_policy",
        "difficulty": "unusable_answer",
    }
    assert came["usage"]["total_tokens"] == 24, "what was paid for counts, be it of use or not"


def test_where_no_part_came_the_error_is_the_answer(http: httpx.Client, upstream: Upstream) -> None:
    plan(upstream, dict.fromkeys(PARTS, refused(400, "not this", code="content_policy")))
    answer = analyze(http)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "content_policy"


def test_a_provider_without_json_schemas_is_asked_in_another_way(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.begin_anew()
    upstream.bodies.clear()
    no_schema = refused(400, "response_format.type json_schema is not supported")
    upstream.planned.append(no_schema)
    plan(upstream, GOOD)
    with (
        gateway_world({"main": upstream.url}, {"state": str(tmp_path)}) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        for _ in range(2):
            body = {"text": DOCUMENT, "parts": ["summary"]}
            answer = http.post("/v1/analyze", json=body)
            assert answer.json()["summary"] == GOOD["summary"]["summary"]
    formats = [body["response_format"]["type"] for body in upstream.bodies]
    assert formats == ["json_schema", "json_object", "json_object"]


def test_the_simulated_provider_answers_every_part(tmp_path: Path) -> None:
    text = "The pool says connection refused. It was slow, too. Nobody could pay."
    with (
        SimulatedProvider(Settings(truth=TRUTH)) as provider,
        gateway_world({"main": provider.base_url}, {"state": str(tmp_path)}) as world,
    ):
        came = httpx.post(f"{world.base_url}/analyze", json={"text": text}).json()
    assert came["errors"] == {}
    assert came["keywords"][:2] == ["pool", "says"]
    assert came["summary"] == "The pool says connection refused. It was slow, too."
    assert came["difficulty"]["level"] == 4
    assert came["retrospective"]["outcome"] == "problem"
    assert came["retrospective"]["issues"][0]["quote"] == "connection refused"


def test_the_same_analysis_under_one_idempotency_key_is_asked_once(
    http: httpx.Client, upstream: Upstream
) -> None:
    plan(upstream, GOOD)
    headers = {"authorization": "Bearer fp-web", "idempotency-key": "once"}
    came = [
        http.post("/v1/analyze", json={"text": DOCUMENT}, headers=headers).json() for _ in range(2)
    ]
    assert upstream.calls == 4
    assert came[0]["errors"] == came[1]["errors"] == {}
    assert came[0]["retrospective"] == came[1]["retrospective"]


def test_a_keys_limits_are_those_of_each_part(http: httpx.Client, upstream: Upstream) -> None:
    plan(upstream, GOOD)
    too_slow = analyze(http, "two")
    assert (too_slow.status_code, too_slow.json()["error"]["code"]) == (400, "key_rate_too_low")
    assert upstream.calls == 0
    assert analyze(http, "six").json()["errors"] == {}
    answer = analyze(http, "six")
    assert answer.status_code == 200
    codes = [error["code"] for error in answer.json()["errors"].values()]
    assert codes == ["key_rate_limited"] * 2
    assert upstream.calls == 6
    spent = analyze(http, "poor")
    assert (spent.status_code, spent.json()["error"]["code"]) == (429, "key_spent")
    assert analyze(http, "narrow").status_code == 403
    assert analyze(http, "nobody").status_code == 401
    assert upstream.calls == 6


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"text": ""}, "invalid_document", "text"),
        ({"text": 5}, "invalid_document", "text"),
        ({"text": "word " * 20_000}, "document_too_long", "text"),
        ({"kind": "poem"}, None, "kind"),
        ({"language": "fr"}, None, "language"),
        ({"parts": []}, None, "parts"),
        ({"parts": ["all"]}, None, "parts"),
        ({"parts": [{}]}, None, "parts"),
        ({"model": 3}, None, "model"),
        ({"max_tokens": 3}, "unknown_parameter", "max_tokens"),
    ],
)
def test_a_request_that_makes_no_sense_names_the_field(
    http: httpx.Client, upstream: Upstream, body: dict[str, Any], code: str | None, param: str
) -> None:
    answer = analyze(http, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, code, param)
    assert upstream.calls == 0


def test_an_unknown_model_is_not_found(http: httpx.Client) -> None:
    assert analyze(http, model="nothing").status_code == 404


def test_the_example_in_the_documentation_works(
    http: httpx.Client, upstream: Upstream, world: World
) -> None:
    plan(upstream, GOOD)
    page = (Path(__file__).parents[2] / "docs" / "analyze.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\n(curl .*?)```", page, re.DOTALL)
    command = command.replace("http://127.0.0.1:8000", world.url).replace("$FUPAN_KEY", "fp-web")
    told = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert orjson.loads(told.stdout)["summary"] == GOOD["summary"]["summary"]
