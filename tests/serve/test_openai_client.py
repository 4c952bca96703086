"""The official `openai` client talks to the gateway as it does to OpenAI."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCallParam,
)
from pydantic import BaseModel

from tests.serve.gateway_world import World
from tests.serve.openai_world import SAID, client_of, openai_world
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    chunk,
    completion,
    streamed,
)

TOOL: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Today's weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}
CALLED: list[ChatCompletionMessageFunctionToolCallParam] = [
    {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "武汉"}'},
    }
]


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with openai_world(upstream, tmp_path_factory.mktemp("keys")) as world:
        yield world


@pytest.fixture
def client(world: World, upstream: Upstream) -> OpenAI:
    upstream.begin_anew()
    upstream.bodies.clear()
    return client_of(world)


def test_a_chat(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="simulated", messages=SAID)
    assert answer.choices[0].message.content == "Hello."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 8


def test_the_answer_is_the_providers_byte_for_byte(client: OpenAI, upstream: Upstream) -> None:
    odd = b'{"choices": [{"message": {"content": "x"}, "odd": 1.50}],  "system_fingerprint":"f"}'
    upstream.planned.append(answered(odd))
    raw = client.chat.completions.with_raw_response.create(model="simulated", messages=SAID)
    assert raw.content == odd


def test_a_stream_says_the_same_and_no_usage(client: OpenAI) -> None:
    with client.chat.completions.create(model="simulated", messages=SAID, stream=True) as stream:
        events = list(stream)
    assert "".join(event.choices[0].delta.content or "" for event in events) == "Hello."
    assert events[-1].choices[0].finish_reason == "stop"
    assert all(event.usage is None for event in events)


def test_a_stream_ends_with_its_usage_where_that_is_asked_for(client: OpenAI) -> None:
    with client.chat.completions.create(
        model="simulated", messages=SAID, stream=True, stream_options={"include_usage": True}
    ) as stream:
        events = list(stream)
    assert events[-1].choices == []
    assert events[-1].usage is not None
    assert events[-1].usage.completion_tokens == 3


def test_events_are_joined_where_that_is_asked_for(client: OpenAI, upstream: Upstream) -> None:
    said = [chunk({"content": text}) for text in (" one", " two", " three", " four")]
    upstream.planned.append(streamed([*said, chunk({}, "stop")]))
    with client.chat.completions.create(
        model="simulated", messages=SAID, stream=True, extra_headers={"x-fupan-join": "3"}
    ) as stream:
        texts = [event.choices[0].delta.content for event in stream]
    assert texts == [" one two three", " four", None]


def test_tools_go_both_ways_as_they_are(client: OpenAI, upstream: Upstream) -> None:
    upstream.planned.append(answered(completion(None, tool_calls=CALLED)))
    answer = client.chat.completions.create(
        model="simulated",
        messages=[
            *SAID,
            {"role": "assistant", "content": None, "tool_calls": CALLED},
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        ],
        tools=[TOOL],
        tool_choice="auto",
        parallel_tool_calls=False,
    )
    [sent] = upstream.bodies
    assert sent["tools"] == [TOOL]
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("auto", False)
    assert sent["messages"][1]["tool_calls"] == CALLED
    [call] = answer.choices[0].message.tool_calls or []
    assert call.to_dict() == CALLED[0]


def test_tools_are_called_in_a_stream(client: OpenAI, upstream: Upstream) -> None:
    parts = ['{"ci', 'ty": "武汉"}']
    head = {"index": 0, "id": "call_1", "type": "function"}
    deltas = [
        {"tool_calls": [{**head, "function": {"name": "weather", "arguments": ""}}]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in parts),
    ]
    upstream.planned.append(streamed([*map(chunk, deltas), chunk({}, "tool_calls"), chunk(None)]))
    with client.chat.completions.stream(model="simulated", messages=SAID, tools=[TOOL]) as stream:
        answer = stream.get_final_completion()
    [call] = answer.choices[0].message.tool_calls or []
    assert call.function.arguments == '{"city": "武汉"}'


class Weather(BaseModel):
    city: str


def test_an_answer_is_parsed_by_a_schema(client: OpenAI, upstream: Upstream) -> None:
    upstream.planned.append(answered(completion('{"city": "武汉"}')))
    answer = client.chat.completions.parse(
        model="simulated", messages=SAID, response_format=Weather
    )
    assert answer.choices[0].message.parsed == Weather(city="武汉")
    assert upstream.bodies[0]["response_format"]["json_schema"]["name"] == "Weather"


def test_what_the_gateway_does_not_know_is_passed_on(client: OpenAI, upstream: Upstream) -> None:
    client.chat.completions.create(
        model="simulated",
        messages=SAID,
        max_tokens=7,
        seed=3,
        extra_body={"enable_thinking": False, "top_k": 20, "x": {"deep": [1, None]}},
    )
    [sent] = upstream.bodies
    assert sent == {
        "model": "simulated",
        "messages": SAID,
        "max_tokens": 7,
        "seed": 3,
        "enable_thinking": False,
        "top_k": 20,
        "x": {"deep": [1, None]},
    }


def test_the_providers_own_key_is_sent_not_the_clients(client: OpenAI, upstream: Upstream) -> None:
    client.chat.completions.create(model="simulated", messages=SAID)
    assert "fp-client" not in str(upstream.headers[-1])


@pytest.mark.parametrize("given", ["one", ["one", "two", "three"], [1, 2], [[1, 2], [3]]])
def test_embeddings_of_texts_and_of_tokens(client: OpenAI, upstream: Upstream, given: Any) -> None:
    answer = client.embeddings.create(model="simulated", input=given)
    many = len(given) if isinstance(given, list) and given[0] != 1 else 1
    # The client asks for base64 and unpacks it.
    assert [each.embedding for each in answer.data] == [[float(i), 0.5, 1.0] for i in range(many)]
    assert upstream.bodies[0]["input"] == given
    assert upstream.bodies[0]["encoding_format"] == "base64"


def test_embeddings_as_floats_of_another_length(client: OpenAI, upstream: Upstream) -> None:
    answer = client.embeddings.create(
        model="simulated", input=["a", "b"], encoding_format="float", dimensions=3
    )
    assert answer.data[1].embedding == [1.0, 0.5, 1.0]
    assert answer.usage.total_tokens == 2
    assert upstream.bodies[0]["dimensions"] == 3


def test_models(client: OpenAI) -> None:
    names = {model.id: model.owned_by for model in client.models.list()}
    assert names == dict.fromkeys(("main/simulated", "main/other", "simulated", "other"), "main")
    assert client.models.retrieve("main/other").id == "main/other"


def test_a_narrow_key_sees_its_models_only(world: World, client: OpenAI) -> None:
    assert {model.id for model in client_of(world, "fp-narrow").models.list()} == {
        "other",
        "main/other",
    }


def test_ids_of_requests_go_both_ways(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="simulated", messages=SAID, extra_headers={"x-request-id": "mine-1"}
    )
    assert answer._request_id == "mine-1"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_plain_curl(world: World, client: OpenAI, tmp_path: Path) -> None:
    body = '{"model": "simulated", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
    done = subprocess.run(
        [
            "curl",
            "-sSN",
            "-i",
            f"{world.base_url}/chat/completions",
            "-H",
            "authorization: Bearer fp-client",
            "-H",
            "content-type: application/json",
            "-d",
            body,
        ],
        check=True,
        capture_output=True,
        timeout=60,
        text=True,
    )
    head, _, events = done.stdout.partition("\n\n")
    assert "200 OK" in head
    assert "text/event-stream" in head
    assert events.endswith("data: [DONE]\n\n")
