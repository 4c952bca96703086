"""The official `openai` client talks to the gateway as it does to OpenAI."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import orjson
import pytest
from openai import OpenAI
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
)
from pydantic import BaseModel

from serve.gateway.keys import digest_of
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

MODELS = ("simulated", "other")
KEYS: dict[str, dict[str, Any]] = {
    "fp-client": {"name": "client", "tenant": "team"},
    "fp-narrow": {"name": "narrow", "tenant": "team", "models": ["other"]},
    "fp-rare": {"name": "rare", "tenant": "team", "rpm": 1},
}
SAID: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello."}]
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
def upstream() -> Iterator[Upstream]:
    with upstream_world() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(
        orjson.dumps([{**record, "sha256": digest_of(key)} for key, record in KEYS.items()])
    )
    provider = provider_at(upstream.url, models=MODELS)
    with gateway_world({"main": provider}, {"keys": str(keys)}) as world:
        yield world


@pytest.fixture
def client(world: World, upstream: Upstream) -> OpenAI:
    upstream.planned.clear()
    upstream.bodies.clear()
    return client_of(world)


def client_of(world: World, key: str = "fp-client", **options: Any) -> OpenAI:
    return OpenAI(base_url=world.base_url, api_key=key, **{"max_retries": 0, **options})


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


# Errors: one of each class that the client has.


def test_an_unknown_key_is_an_authentication_error(world: World) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        client_of(world, "fp-wrong").chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "invalid_api_key"
    assert "fp-wrong" not in str(caught.value)


def test_a_model_that_the_key_may_not_ask_is_a_permission_error(world: World) -> None:
    with pytest.raises(openai.PermissionDeniedError) as caught:
        client_of(world, "fp-narrow").chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.code, caught.value.param) == ("model_not_allowed", "model")


def test_an_unknown_model_is_a_not_found_error(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="none", messages=SAID)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_a_request_that_makes_no_sense_is_a_bad_request(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="simulated", messages=[])
    assert caught.value.param == "messages"


def test_what_the_provider_refuses_is_a_bad_request_in_its_words(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(400, "top_k must be positive", "bad_top_k"))
    with pytest.raises(openai.BadRequestError, match="top_k must be positive") as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "bad_top_k"


def test_a_provider_that_answers_422_is_a_bad_request_too(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(422, "no"))
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="simulated", messages=SAID)


def test_a_used_up_rate_of_the_key_is_a_rate_limit_error(world: World, client: OpenAI) -> None:
    rare = client_of(world, "fp-rare")
    rare.chat.completions.create(model="simulated", messages=SAID)
    with pytest.raises(openai.RateLimitError) as caught:
        rare.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "key_rate_limited"
    assert int(caught.value.response.headers["retry-after"]) >= 1


def test_a_rate_of_the_provider_is_waited_for(client: OpenAI, upstream: Upstream) -> None:
    limited = refused(429, "slow down", **{"retry-after-ms": "50"})
    upstream.planned.extend([limited, limited])
    answer = client.chat.completions.create(model="simulated", messages=SAID)
    assert answer.choices[0].message.content == "Hello."
    assert upstream.calls == 3


def test_an_empty_account_at_the_provider_is_a_rate_limit_error(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(429, "You exceeded your quota", "insufficient_quota"))
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "provider_quota_exhausted"


@pytest.mark.parametrize("status", [401, 403])
def test_the_gateways_own_key_being_wrong_is_no_fault_of_the_client(
    client: OpenAI, upstream: Upstream, status: int
) -> None:
    upstream.planned.append(refused(status, "Incorrect API key"))
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.status_code, caught.value.code) == (502, "provider_failed")


def test_an_answer_that_is_none_is_an_internal_server_error(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(answered(b"<html>502</html>"))
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.status_code, caught.value.code) == (502, "provider_failed")


def test_a_client_that_waits_no_longer_gets_its_own_timeout(
    world: World, client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(silence)
    with pytest.raises(openai.APITimeoutError):
        client_of(world, timeout=0.5).chat.completions.create(model="simulated", messages=SAID)
    upstream.wait_left()


def test_nobody_at_the_port_is_a_connection_error() -> None:
    with pytest.raises(openai.APIConnectionError):
        OpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0).models.list()


def test_an_error_in_the_middle_of_a_stream_is_raised(client: OpenAI, upstream: Upstream) -> None:
    broken = {"error": {"message": "overloaded", "type": "server_error", "code": None}}
    upstream.planned.append(streamed([chunk({"content": "Hel"}), broken], done=False))
    with client.chat.completions.create(model="simulated", messages=SAID, stream=True) as stream:
        assert next(stream).choices[0].delta.content == "Hel"
        with pytest.raises(openai.APIError, match="main/simulated"):
            list(stream)


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
        timeout=20,
        text=True,
    )
    head, _, events = done.stdout.partition("\n\n")
    assert "200 OK" in head
    assert "text/event-stream" in head
    assert events.endswith("data: [DONE]\n\n")
