"""The simulated provider over HTTP: it keeps to the protocol, in what it sends and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serve.simulated_requests import (
    RESULTS,
    analysis,
    calling,
    chat,
    content,
    error,
    json_schema,
    results,
)


def test_a_completion_has_the_members_of_the_protocol() -> None:
    with calling() as caller:
        body = caller.post(chat("hello")).json()
    assert body["object"] == "chat.completion"
    assert body["model"] == "simulated"
    (choice,) = body["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["refusal"] is None
    assert choice["finish_reason"] == "stop"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_tokens_of_a_prompt_are_counted_with_their_framing() -> None:
    body = chat("hello world", system="hello")
    with calling() as caller:
        usage = caller.post(body).json()["usage"]
    # role and content: 1 + 1 and 1 + 2 tokens; 3 around each message and 3 before the answer
    assert usage["prompt_tokens"] == (1 + 1 + 3) + (1 + 2 + 3) + 3


def test_a_text_split_into_parts_is_read_as_one() -> None:
    body = chat("")
    body["messages"][1]["content"] = [
        {"type": "text", "text": '{"id": 1, "text": '},
        {"type": "text", "text": '"connection refused"}'},
    ]
    body["response_format"] = {"type": "json_object"}
    body["messages"][0]["content"] = 'JSON with "results", please'
    with calling() as caller:
        (found,) = results(caller.post(body))
    assert (found["id"], found["outcome"]) == (1, "problem")


@pytest.mark.parametrize(
    ("change", "status", "param", "code"),
    [
        ({"messages": None}, 400, "messages", "missing_required_parameter"),
        ({"messages": []}, 400, "messages", "invalid_value"),
        (
            {"messages": [{"role": "judge", "content": ""}]},
            400,
            "messages[0].role",
            "invalid_value",
        ),
        ({"model": 3}, 400, "model", "invalid_type"),
        ({"model": "other"}, 404, "model", "model_not_found"),
        ({"max_tokens": 0}, 400, "max_tokens", "invalid_value"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, 400, "max_tokens", None),
        ({"temperature": 3}, 400, "temperature", "invalid_value"),
        ({"n": 2}, 400, "n", "unsupported_value"),
        ({"functions": [{}]}, 400, "functions", "unsupported_parameter"),
        ({"response_format": {"type": "xml"}}, 400, "response_format.type", "invalid_value"),
        ({"response_format": {"type": "json_object"}}, 400, "messages", None),
        (
            {"response_format": {"type": "json_schema"}},
            400,
            "response_format.json_schema",
            "missing_required_parameter",
        ),
        (
            {"response_format": json_schema({"type": "object", "properties": {"a": {}}})},
            400,
            "response_format",
            None,
        ),
        (
            {"response_format": json_schema({"type": "object", "$ref": "#/no"}, strict=False)},
            400,
            "response_format",
            None,
        ),
        ({"max_tokens": 9000}, 400, "messages", "context_length_exceeded"),
    ],
)
def test_what_does_not_fit_the_protocol_is_refused_by_name(
    change: dict[str, Any], status: int, param: str, code: str | None
) -> None:
    with calling() as caller:
        reply = caller.post(chat("hello", **{"model": "simulated"} | change))
        again = caller.post(chat("hello"))
    assert reply.status_code == status
    assert error(reply)["param"] == param
    assert error(reply)["code"] == code
    assert error(reply)["type"] == "invalid_request_error"
    assert again.status_code == 200


def test_messages_longer_than_the_context_are_refused() -> None:
    with calling(context=200) as caller:
        reply = caller.post(chat("word " * 300))
    assert reply.status_code == 400
    assert error(reply)["code"] == "context_length_exceeded"


def test_a_body_that_is_no_json_is_refused() -> None:
    with calling() as caller:
        reply = caller.client.post("/chat/completions", content=b'{"model": ')
        unknown = caller.client.get("/nothing")
    assert (reply.status_code, error(reply)["type"]) == (400, "invalid_request_error")
    assert (unknown.status_code, error(unknown)["type"]) == (404, "invalid_request_error")


@pytest.mark.parametrize(
    ("feature", "fields", "param"),
    [
        ("json_schema", {"response_format": json_schema(RESULTS)}, "response_format"),
        ("json_object", {"response_format": {"type": "json_object"}}, "response_format"),
        ("max_tokens", {"max_tokens": 10}, "max_tokens"),
        ("max_completion_tokens", {"max_completion_tokens": 10}, "max_completion_tokens"),
        ("temperature", {"temperature": 0}, "temperature"),
        ("stream", {"stream": True}, "stream"),
    ],
)
def test_a_feature_may_be_refused_by_name(feature: str, fields: dict[str, Any], param: str) -> None:
    with calling(unsupported=[feature]) as caller:
        refused = caller.post(chat("json", **fields))
        plain = caller.post(chat("json"))
    assert refused.status_code == 400
    assert error(refused)["param"] == param
    assert param in error(refused)["message"]
    assert plain.status_code == 200


def test_a_key_is_demanded_where_one_is_set() -> None:
    with calling(api_key="s3cret") as caller:
        missing = caller.post(chat("x"))
        wrong = caller.post(chat("x"), Authorization="Bearer other")
        right = caller.post(chat("x"), Authorization="Bearer s3cret")
        models = caller.client.get("/models")
    assert [r.status_code for r in (missing, wrong, right, models)] == [401, 401, 200, 401]
    assert error(wrong)["code"] == "invalid_api_key"
    assert "other" not in wrong.text
    assert "s3cret" not in wrong.text


def test_the_models_are_listed() -> None:
    with calling(models=["large", "small"]) as caller:
        listed = caller.client.get("/models").json()
        one = caller.client.get("/models/small").json()
        other = caller.client.get("/models/other")
    assert listed["object"] == "list"
    assert [m["id"] for m in listed["data"]] == ["large", "small"]
    assert one["object"] == "model"
    assert error(other)["code"] == "model_not_found"


def test_a_stream_holds_the_same_text_and_ends_with_usage_when_asked() -> None:
    body = analysis(["connection refused", "fine"])
    with calling(output_rate=50_000.0) as caller:
        whole = caller.post(body)
        stream = caller.post(body | {"stream": True, "stream_options": {"include_usage": True}})
    assert stream.headers["content-type"] == "text/event-stream"
    events = [line.removeprefix("data: ") for line in stream.text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    parts = [json.loads(event) for event in events]
    assert {p["object"] for p in parts} == {"chat.completion.chunk"}
    *chunks, last = parts
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == whole.json()["usage"]["completion_tokens"]
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
    assert text == content(whole)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_long_system_message_is_cached_the_second_time() -> None:
    body = chat("x", system="word " * 1500)
    with calling() as caller:
        cached = [
            caller.post(body).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
            for _ in range(2)
        ]
    assert cached == [0, 1408]
