"""What the gateway makes of a request: its body, its model, its task."""

from __future__ import annotations

import gzip
from typing import Any

import httpx
import orjson
import pytest

from tests.serve.gateway_chat import CHAT, chat, error
from tests.serve.gateway_world import gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream, answered, completion, silence


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
