"""Embeddings and calls of tools of the simulated provider."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from serve.gateway.chunks import assemble
from serve.simulated import Settings, SimulatedProvider
from serve.simulated_embeddings import DIMENSIONS, MOST_INPUTS
from tests.serve.event_reading import read_events

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "clock"}},
]
CHAT = {
    "model": "simulated",
    "messages": [{"role": "user", "content": "What is the weather?"}],
    "tools": TOOLS,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider(Settings(latency=((1, 0.0),), context=100_000)) as running:
        yield running


def post(provider: SimulatedProvider, path: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{provider.base_url}/{path}", json={"model": "simulated", **body})


def vectors(provider: SimulatedProvider, given: Any, **more: Any) -> list[Any]:
    answer = post(provider, "embeddings", input=given, **more).json()
    assert [each["index"] for each in answer["data"]] == list(range(len(answer["data"])))
    return [each["embedding"] for each in answer["data"]]


def likeness(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_texts_that_share_words_are_near_each_other(provider: SimulatedProvider) -> None:
    one, other, same, third = vectors(
        provider,
        ["the pool is exhausted", "is the pool exhausted?", "the pool is exhausted", "登录失败"],
    )
    assert one == same
    assert len(one) == DIMENSIONS
    assert likeness(one, one) == pytest.approx(1, abs=1e-4)
    assert likeness(one, other) > 0.95
    assert abs(likeness(one, third)) < 0.6


def test_every_form_of_input_and_output_is_served_and_counted(provider: SimulatedProvider) -> None:
    answer = post(provider, "embeddings", input=["a b", "c"], dimensions=8).json()
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert [len(each["embedding"]) for each in answer["data"]] == [8, 8]
    assert len(vectors(provider, [1, 2, 3])) == 1
    assert len(vectors(provider, [[1, 2], [3]])) == 2
    (coded,) = vectors(provider, "a b", dimensions=8, encoding_format="base64")
    numbers = struct.unpack("<8f", base64.b64decode(coded))
    assert numbers == pytest.approx(answer["data"][0]["embedding"], abs=1e-5)
    assert math.isclose(sum(number**2 for number in numbers), 1, abs_tol=1e-4)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "input"),
        ({"input": ""}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": ["a", ""]}, 400, "input"),
        ({"input": ["a"] * (MOST_INPUTS + 1)}, 400, "input"),
        ({"input": "word " * 9000}, 400, "input"),
        ({"input": "a", "model": "other"}, 404, "model"),
        ({"input": "a", "dimensions": 0}, 400, "dimensions"),
    ],
)
def test_what_does_not_fit_is_refused(
    provider: SimulatedProvider, body: dict[str, Any], status: int, param: str
) -> None:
    answer = post(provider, "embeddings", **body)
    assert answer.status_code == status
    assert answer.json()["error"]["param"].startswith(param)


def test_embeddings_have_limits_and_faults_and_a_place_in_the_account() -> None:
    settings = Settings(latency=((1, 0.0),), rpm=60, request_burst=2, fault_schedule={1: "reset"})
    with SimulatedProvider(settings) as running:
        with pytest.raises(httpx.TransportError):
            post(running, "embeddings", input="a")
        assert post(running, "embeddings", input="a").status_code == 200
        assert post(running, "embeddings", input="a").status_code == 429
        stats = running.stats()
    assert (stats["answers"], stats["prompt_tokens"], stats["requests"]) == (1, 1, 3)


def test_a_tool_is_called_with_arguments_that_fit(provider: SimulatedProvider) -> None:
    choice = post(provider, "chat/completions", **CHAT).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert set(orjson.loads(call["function"]["arguments"])) == {"city", "days"}


async def test_a_streamed_call_says_the_same(provider: SimulatedProvider) -> None:
    url = f"{provider.base_url}/chat/completions"
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async with (
        httpx.AsyncClient() as client,
        client.stream("POST", url, json={**CHAT, **options}) as answer,
    ):
        payloads = [payload async for payload in read_events(answer.aiter_raw())]
    whole = post(provider, "chat/completions", **CHAT).json()
    streamed = orjson.loads(assemble(payloads))
    assert (
        streamed["choices"][0]["message"]["tool_calls"]
        == (whole["choices"][0]["message"]["tool_calls"])
    )
    assert streamed["usage"] == whole["usage"]


def test_the_choice_of_a_tool_is_heeded(provider: SimulatedProvider) -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    called = post(provider, "chat/completions", **CHAT, tool_choice=named).json()
    function = called["choices"][0]["message"]["tool_calls"][0]["function"]
    assert function == {"name": "clock", "arguments": "{}"}
    none = post(provider, "chat/completions", **CHAT, tool_choice="none").json()
    assert none["choices"][0]["message"]["content"]
    said = [*CHAT["messages"], {"role": "tool", "tool_call_id": "call_weather", "content": "rain"}]
    after = post(provider, "chat/completions", **{**CHAT, "messages": said}).json()
    assert after["choices"][0]["finish_reason"] == "stop"
    unknown = {"type": "function", "function": {"name": "nothing"}}
    refused = post(provider, "chat/completions", **CHAT, tool_choice=unknown)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tool_choice")
