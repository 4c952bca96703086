"""The gateway by plain HTTP: its routes, its headers, what it passes on and what it takes back."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from serve.gateway.app import VERSION, build_app
from serve.gateway.build import build_gateway
from serve.gateway.openapi import document
from serve.gateway.settings import GatewaySettings
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    chunk,
    completion,
    refused,
    silence,
    streamed,
    upstream_world,
)

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Say hello."}]}
PRICES = {"currency": "CNY", "input": 2, "output": 10}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with upstream_world() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def world(upstream: Upstream) -> Iterator[World]:
    with gateway_world({"main": provider_at(upstream.url, prices=PRICES)}) as world:
        yield world


@pytest.fixture
def http(world: World, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.planned.clear()
    upstream.bodies.clear()
    with httpx.Client(base_url=world.url) as client:
        yield client


def chat(http: httpx.Client, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return http.post("/v1/chat/completions", json={**CHAT, **body}, headers=headers)


def error(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    told = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, told["code"], told["param"]


# Routes.


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/completions", "/v1/responses", "/v1/files", "/v1/models/", "/docs", "/redoc"],
)
def test_an_unknown_path_is_told_in_openais_form(http: httpx.Client, path: str) -> None:
    assert error(http.get(path))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/v1/embeddings", "POST"),
        ("DELETE", "/v1/models/simulated", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_another_method_is_told_in_openais_form(
    http: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = http.request(method, path)
    assert error(answer)[:2] == (405, "method_not_supported")
    assert answer.headers["allow"] == allowed


def test_options_and_head(http: httpx.Client) -> None:
    asked = http.options("/v1/chat/completions")
    assert (asked.status_code, asked.headers["allow"], asked.content) == (204, "POST", b"")
    head = http.head("/v1/models")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(http.get("/v1/models").content))


def test_it_says_that_it_runs_and_is_ready(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok", "version": VERSION}
    assert http.get("/readyz").json() == {"status": "ready"}


def test_it_takes_nobody_in_while_it_is_about_to_end(upstream: Upstream) -> None:
    with gateway_world({"main": upstream.url}) as world, httpx.Client(base_url=world.url) as http:
        world.gateway.drain()
        for answer in (http.get("/readyz"), chat(http)):
            assert error(answer)[:2] == (503, "gateway_draining")
            assert answer.headers["retry-after"] == "1"
        assert http.get("/healthz").status_code == 200


async def test_it_is_not_ready_before_it_has_started(upstream: Upstream) -> None:
    settings = GatewaySettings(providers={"main": provider_at(upstream.url)})
    app = build_app(build_gateway(settings))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200


def test_openapi_tells_every_route_and_no_other(http: httpx.Client, world: World) -> None:
    told = http.get("/openapi.json").json()
    assert told == document(VERSION, metrics=True)
    app = build_app(world.gateway)
    routes = {route.path for route in app.routes}  # type: ignore[attr-defined]
    paths = {path.replace("{model}", "{name:path}") for path in told["paths"]}
    assert routes - paths == {"/openapi.json"}
    assert paths - routes == set()


def test_what_it_measures_can_be_read_or_is_off(http: httpx.Client, upstream: Upstream) -> None:
    chat(http)
    chat(http, model="none")
    told = http.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    counted = told.text.splitlines()
    for status in ("200", "404"):
        [line] = [line for line in counted if f'chat/completions",status="{status}"' in line][:1]
        assert float(line.rpartition(" ")[2]) >= 1
    with gateway_world({"main": upstream.url}, {"metrics": False}) as world:
        assert error(httpx.get(f"{world.url}/metrics"))[0] == 404
        assert "/metrics" not in httpx.get(f"{world.url}/openapi.json").json()["paths"]


# Headers.


def test_a_sane_id_of_the_client_is_kept_and_another_is_replaced(http: httpx.Client) -> None:
    assert chat(http, {"x-request-id": "a b/ü!"[:4]}).headers["x-request-id"] == "a b/"
    for insane in ("x" * 129, "ü", "\x01"):
        answer = chat(http, {"x-request-id": insane.encode("latin-1")})  # type: ignore[dict-item]
        if answer.status_code == 200:  # the server itself refuses some
            assert answer.headers["x-request-id"].startswith("req_")


def test_it_says_who_answered_and_what_it_cost(http: httpx.Client) -> None:
    answer = chat(http)
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert answer.headers["x-fupan-cache"] == "off"
    # 5 tokens in at 2 and 3 out at 10 a million.
    assert answer.headers["x-fupan-cost"] == "0.00004 CNY"


def test_a_stream_is_not_held_back(http: httpx.Client) -> None:
    answer = chat(http, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert answer.text.endswith("data: [DONE]\n\n")


def test_without_keys_none_is_needed_and_any_is_taken(http: httpx.Client) -> None:
    assert chat(http).status_code == 200
    assert chat(http, {"authorization": "Bearer anything"}).status_code == 200


def test_headers_of_the_client_are_not_passed_on(http: httpx.Client, upstream: Upstream) -> None:
    chat(http, {"openai-organization": "org-1", "cookie": "a=b", "x-mine": "1"})
    sent = {name.lower() for name in upstream.headers[-1]}
    assert not sent & {"openai-organization", "cookie", "x-mine", "x-request-id"}


def test_headers_of_the_provider_are_not_passed_on(http: httpx.Client, upstream: Upstream) -> None:
    told = {"x-ratelimit-limit-requests": "99999", "openai-processing-ms": "7", "set-cookie": "a=b"}
    upstream.planned.append(answered(completion(), 200, **told))
    assert not set(chat(http).headers) & set(told)


def test_a_model_has_no_date(http: httpx.Client) -> None:
    model = http.get("/v1/models/simulated").json()
    assert model == {"id": "simulated", "object": "model", "created": 0, "owned_by": "main"}


def test_a_stream_begins_while_the_provider_still_writes(
    http: httpx.Client, upstream: Upstream
) -> None:
    upstream.planned.append(streamed([chunk({"content": "Hel"})], then=silence))
    with http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer:
        assert answer.headers["x-fupan-model"] == "main/simulated"
        assert "x-fupan-cost" not in answer.headers
        assert b"Hel" in next(answer.iter_raw())
    upstream.wait_left()


# Bodies.


def test_a_compressed_body_is_refused(http: httpx.Client, upstream: Upstream) -> None:
    body = gzip.compress(orjson.dumps(CHAT))
    answer = http.post("/v1/chat/completions", content=body, headers={"content-encoding": "gzip"})
    assert error(answer)[0] == 400
    assert upstream.calls == 0


def test_integers_beyond_64_bits_are_sent_on_as_decimals(
    http: httpx.Client, upstream: Upstream
) -> None:
    chat(http, large=2**64, fits=2**64 - 1)
    assert upstream.bodies[0]["fits"] == 2**64 - 1
    assert isinstance(upstream.bodies[0]["large"], float)


def test_a_body_that_is_no_json(http: httpx.Client) -> None:
    assert error(http.post("/v1/chat/completions", content=b"{"))[0] == 400
    assert error(http.post("/v1/embeddings", content=b"[]"))[0] == 400


def test_a_body_that_is_nested_too_deeply_to_be_sent_on(http: httpx.Client) -> None:
    deep = b'{"model": "simulated", "messages": [{}], "x": ' + b"[" * 300 + b"]" * 300 + b"}"
    assert error(http.post("/v1/chat/completions", content=deep))[0] == 400


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {"model": "simulated"}, "messages"),
        ("/v1/chat/completions", {**CHAT, "n": 0}, "n"),
        ("/v1/embeddings", {"model": "simulated"}, "input"),
        ("/v1/embeddings", {"model": "simulated", "input": []}, "input"),
    ],
)
def test_what_is_wrong_is_named(
    http: httpx.Client, upstream: Upstream, path: str, body: Any, param: str
) -> None:
    assert error(http.post(path, json=body))[::2] == (400, param)
    assert upstream.calls == 0


def test_a_model_by_its_name_its_providers_name_or_a_name_of_ones_own(upstream: Upstream) -> None:
    provider = provider_at(upstream.url, models=("large", "small"))
    names = {"best": {"use": ["main/large"]}}
    auto = {"fast": "main/small", "powerful": "best"}
    with (
        gateway_world({"main": provider}, {"names": names, "auto": auto}) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        asked = {
            name: chat(http, model=name).headers["x-fupan-model"]
            for name in ("small", "main/small", "best", "auto")
        }
        assert error(chat(http, model="none"))[1] == "model_not_found"
        listed = {model["id"] for model in http.get("/v1/models").json()["data"]}
    assert asked == {
        "small": "main/small",
        "main/small": "main/small",
        "best": "main/large",
        "auto": "main/small",
    }
    assert set(asked) < listed


def test_text_of_any_language_goes_through_unchanged(
    http: httpx.Client, upstream: Upstream
) -> None:
    said = '复盘 🔥 \u2028 \\ \x7f "quoted" \t'
    upstream.planned.append(answered(completion(said)))
    answer = chat(http, messages=[{"role": "user", "content": said}])
    assert upstream.bodies[0]["messages"][0]["content"] == said
    assert answer.json()["choices"][0]["message"]["content"] == said


# Tasks.


def test_a_task_limits_the_output_where_the_client_does_not(
    http: httpx.Client, upstream: Upstream
) -> None:
    task = {"x-fupan-task": "classification"}
    chat(http, task)
    chat(http, task, max_tokens=999)
    chat(http, task, max_completion_tokens=5)
    chat(http)
    assert [
        (body.get("max_tokens"), body.get("max_completion_tokens")) for body in upstream.bodies
    ] == [(10, None), (999, None), (None, 5), (None, None)]


def test_an_unknown_task_is_refused(http: httpx.Client, upstream: Upstream) -> None:
    assert error(chat(http, {"x-fupan-task": "poetry"})) == (400, "unknown_task", "x-fupan-task")
    assert upstream.calls == 0


def test_a_task_has_its_own_time(upstream: Upstream) -> None:
    tasks = {"quick": {"max_tokens": 1, "timeout": 0.5}}
    with gateway_world({"main": upstream.url}, {"tasks": tasks}) as world:
        upstream.planned.append(silence)
        with httpx.Client(base_url=world.url) as http:
            assert error(chat(http, {"x-fupan-task": "quick"}))[:2] == (504, "provider_timed_out")


# Joined events.


def said_by(answer: httpx.Response) -> list[str]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    deltas = [orjson.loads(line)["choices"][0]["delta"] for line in lines if line != "[DONE]"]
    return [delta["content"] for delta in deltas if delta.get("content")]


def test_events_are_joined_by_the_configuration_or_the_header(upstream: Upstream) -> None:
    said = [chunk({"content": text}) for text in (" one", " two", " three")]
    with (
        gateway_world({"main": upstream.url}, {"join_tokens": 2}) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        upstream.planned.extend(streamed([*said, chunk({}, "stop")]) for _ in range(2))
        assert said_by(chat(http, stream=True)) == [" one two", " three"]
        assert len(said_by(chat(http, {"x-fupan-join": "1"}, stream=True))) == 3
        refusal = chat(http, {"x-fupan-join": "17"}, stream=True)
        assert error(refusal)[::2] == (400, "x-fupan-join")


# Caches, at the wire.


def test_an_equal_request_is_answered_from_the_cache_and_costs_nothing(
    http: httpx.Client, upstream: Upstream
) -> None:
    wish = {"x-fupan-cache": "exact"}
    first, second = (chat(http, wish, temperature=0, seed=1) for _ in range(2))
    assert (first.headers["x-fupan-cache"], second.headers["x-fupan-cache"]) == ("miss", "exact")
    assert second.headers["x-fupan-cost"] == "0"
    assert second.headers["x-fupan-model"] == "main/simulated"
    assert first.content == second.content
    assert upstream.calls == 1


def test_a_stream_is_kept_and_cut_again(http: httpx.Client, upstream: Upstream) -> None:
    wish = {"x-fupan-cache": "exact"}
    first = chat(http, wish, temperature=0, seed=2, stream=True)
    again = chat(http, wish, temperature=0, seed=2, stream=True)
    whole = chat(http, wish, temperature=0, seed=2)
    assert "".join(said_by(first)) == "".join(said_by(again)) == "Hello."
    assert whole.json()["choices"][0]["message"]["content"] == "Hello."
    assert whole.json()["usage"]["total_tokens"] == 8
    assert (again.headers["x-fupan-cache"], whole.headers["x-fupan-cache"]) == ("exact", "exact")
    assert upstream.calls == 1


def test_without_being_asked_nothing_is_kept(http: httpx.Client, upstream: Upstream) -> None:
    for _ in range(2):
        assert chat(http, temperature=0).headers["x-fupan-cache"] == "off"
    assert upstream.calls == 2


def test_an_idempotency_key_asks_once(http: httpx.Client, upstream: Upstream) -> None:
    key = {"idempotency-key": "order-1"}
    first, second = chat(http, key), chat(http, key)
    assert second.headers["x-fupan-cache"] == "repeated"
    assert first.content == second.content
    assert upstream.calls == 1
    assert error(chat(http, key, seed=9))[:2] == (400, "idempotency_key_reused")


def test_a_failure_is_not_kept(http: httpx.Client, upstream: Upstream) -> None:
    upstream.planned.append(refused(400, "no"))
    key = {"idempotency-key": "order-2", "x-fupan-cache": "exact"}
    assert chat(http, key, temperature=0, seed=3).status_code == 400
    assert chat(http, key, temperature=0, seed=3).status_code == 200


# Documents.


def test_a_document_is_analysed_in_parts_that_fail_on_their_own(
    http: httpx.Client, upstream: Upstream
) -> None:
    upstream.planned.append(answered(completion('{"summary": "The disk was full."}')))
    document = {"text": "At 10:00 the disk was full.", "parts": ["summary"]}
    answer = http.post("/v1/analyze", json=document)
    assert answer.json()["summary"] == "The disk was full."
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert error(http.post("/v1/analyze", json={"text": ""}))[::2] == (400, "text")
