"""What a client may send, and how what it may not is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.tokens import count
from serve.gateway.errors import BadRequest
from serve.gateway.estimate import IMAGE_TOKENS, chat_tokens, embedding_tokens, text_tokens
from serve.gateway.request import (
    MOST_ID,
    check_chat,
    check_embeddings,
    idempotency_key,
    output_limit,
    read_object,
    request_id,
    tokens_joined,
)

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ABSENT = object()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def without(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {**body, **fields}.items() if value is not ABSENT}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ABSENT}, "model"),
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 1}, "model"),
        ({"messages": ABSENT}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [CHAT["messages"][0], "hi"]}, "messages[1]"),
        ({"stream": "true"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        (
            {"stream": True, "stream_options": {"include_usage": "yes"}},
            "stream_options.include_usage",
        ),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.5}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"max_completion_tokens": 2**40}, "max_completion_tokens"),
        ({"temperature": "0"}, "temperature"),
        ({"temperature": False}, "temperature"),
    ],
)
def test_a_chat_that_makes_no_sense_names_its_field(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_chat(without(CHAT, **fields))
    assert caught.value.param == param


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": None, "n": None, "max_tokens": None, "temperature": None},
        {"stream": True, "stream_options": {"include_usage": True, "other": 1}},
        {"messages": [{"role": "tool", "content": [{"type": "text", "text": "x"}]}]},
        {"unknown": object, "n": 128, "temperature": 2},
    ],
)
def test_a_chat_that_can_be_asked_for(fields: dict[str, Any]) -> None:
    check_chat({**CHAT, **fields})


parts = st.dictionaries(st.sampled_from(["type", "text", "refusal"]), json_values)
messages = st.fixed_dictionaries(
    {}, optional={"content": json_values | st.lists(parts | json_values), "tool_calls": json_values}
)
chats = st.fixed_dictionaries(
    {"model": st.just("m") | json_values, "messages": st.lists(messages) | json_values},
    optional=dict.fromkeys(("stream", "n", "max_tokens", "tools", "temperature"), json_values),
)
inputs = st.text() | st.lists(st.text() | st.lists(st.integers() | json_values)) | json_values


def refusal(check: Callable[..., Any], *about: Any) -> BadRequest | None:
    try:
        check(*about)
    except BadRequest as error:
        return error
    return None


@settings(max_examples=50)
@given(chats)
def test_whatever_is_sent_as_a_chat_is_taken_or_refused(body: dict[str, Any]) -> None:
    refused = refusal(check_chat, body)
    if refused is None:
        assert chat_tokens(body) >= 0
        assert (output_limit(body) or 1) >= 1
    else:
        assert refused.param


@settings(max_examples=50)
@given(st.fixed_dictionaries({"model": st.just("m"), "input": inputs}))
def test_whatever_is_sent_to_be_embedded_is_taken_or_refused(body: dict[str, Any]) -> None:
    refused = refusal(check_embeddings, body, 3)
    if refused is None:
        assert embedding_tokens(body["input"]) >= 0
    else:
        assert refused.param


@pytest.mark.parametrize(
    ("given_", "inputs"),
    [("one", 1), (["one"], 1), (["one", "two"], 2), ([1, 2, 3, 4], 1), ([[1], [2, 3]], 2)],
)
def test_inputs_are_counted(given_: Any, inputs: int) -> None:
    assert check_embeddings({"model": "m", "input": given_}, 3) == inputs


@pytest.mark.parametrize(
    ("given_", "param"),
    [
        (ABSENT, "input"),
        ("", "input"),
        ([], "input"),
        ({}, "input"),
        (7, "input"),
        (["a", ""], "input[1]"),
        ([[1], []], "input[1]"),
        (["a", 1], "input[1]"),
        ([1, "a"], "input"),
        ([[1, "a"]], "input[0]"),
        ([None], "input[0]"),
        (["a"] * 4, "input"),
    ],
)
def test_inputs_that_make_no_sense_name_their_field(given_: Any, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_embeddings(without({"model": "m", "input": given_}), 3)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a": NaN}',
        b'{"a": "\xff"}',
        b"\x00",
        b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"a": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
)
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        read_object(raw)


@given(st.text(max_size=2 * MOST_ID))
def test_an_id_is_the_clients_or_one_that_can_be_a_header(given_: str) -> None:
    known = request_id(given_)
    assert known.isascii()
    assert known.isprintable()
    assert 0 < len(known) <= MOST_ID
    if given_.isascii() and given_.isprintable() and 0 < len(given_) <= MOST_ID:
        assert known == given_


def test_made_up_ids_differ() -> None:
    assert request_id(None) != request_id(None)


@pytest.mark.parametrize("given_", ["0", "17", "-1", "x", "", "٣", "1.5", "9" * 5000])
def test_how_many_tokens_an_event_may_carry_is_bounded(given_: str) -> None:
    with pytest.raises(BadRequest):
        tokens_joined({"x-fupan-join": given_}, 1)


def test_how_many_tokens_an_event_carries() -> None:
    assert tokens_joined({}, 2) == 2
    assert tokens_joined({"x-fupan-join": "16"}, 2) == 16


def test_an_idempotency_key_is_bounded() -> None:
    assert idempotency_key({}) is None
    assert idempotency_key({"idempotency-key": "k"}) == "k"
    for wrong in ("k" * 300, "\x7f", "é"):
        with pytest.raises(BadRequest):
            idempotency_key({"idempotency-key": wrong})


def test_the_output_of_all_choices_counts() -> None:
    assert output_limit({"max_tokens": 5, "n": 3}) == 15
    assert output_limit({"max_tokens": 5, "max_completion_tokens": 2}) == 5
    assert output_limit({"max_tokens": None, "max_completion_tokens": 2}) == 2
    assert output_limit({"n": 3}) is None


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 40,
        "今天的部署在十点失败，原因是磁盘已满，需要清理日志后重试。" * 40,
        '{"time": "10:00:00", "level": "error", "message": "disk full"}' * 40,
    ],
    ids=["english", "chinese", "json"],
)
def test_the_estimate_is_about_what_is_counted(text: str) -> None:
    assert 0.6 < text_tokens(text) / count(text) < 1.6


def test_pictures_are_estimated_by_their_number_and_not_by_their_bytes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    message = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}
    estimate = chat_tokens({"messages": [message]})
    assert IMAGE_TOKENS < estimate < IMAGE_TOKENS + 30


def test_tools_and_schemas_count() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "x" * 400}}
    estimate = {name: chat_tokens({**CHAT, name: [tool]}) for name in ("tools", "metadata")}
    assert estimate["tools"] > estimate["metadata"] + 90


@pytest.mark.parametrize(
    "held",
    [
        {"prediction": {"type": "content", "content": "x" * 4_000}},
        {"some_new_field": "x" * 4_000},
        {"messages": [{"role": "user", "content": {"text": "x" * 4_000}}]},
        {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "x" * 4_000}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"d": "x" * 4_000}}]}]},
    ],
    ids=["prediction", "unknown", "object", "reasoning", "file"],
)
def test_nothing_that_a_model_may_read_is_free(held: dict[str, Any]) -> None:
    assert chat_tokens({**CHAT, **held}) >= 1_000


def test_embeddings_are_estimated_together() -> None:
    one: Callable[[Any], int] = embedding_tokens
    assert one(["a" * 40, "b" * 40]) == 2 * one("a" * 40)
    assert one([[1, 2, 3], [4]]) == 4
