"""The body of a chat completion: what is understood, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from serve.ask.errors import Refused
from serve.generation.parameters import Message, read_asked
from serve.generation.sampling import Sampling
from tests.serve.generation_world import body


def test_what_is_asked_is_read() -> None:
    asked = read_asked(
        {
            "model": "m",
            "messages": [
                {"role": "developer", "content": "Be short."},
                {"role": "user", "content": [{"type": "text", "text": "a"}, _part("b")]},
            ],
            "max_completion_tokens": 9,
            "top_p": 0.5,
            "seed": -3,
            "stop": "x",
            "logprobs": True,
            "top_logprobs": 2,
            "stream_options": {"include_usage": True},
            "user": "u",
        }
    )
    assert asked.messages == (Message("system", "Be short."), Message("user", "ab"))
    assert (asked.most, asked.sampling, asked.seed) == (9, Sampling(1.0, 0.5), -3)
    assert (asked.stops, asked.top_logprobs, asked.include_usage) == (("x",), 2, True)


def test_values_that_change_nothing_are_taken() -> None:
    neutral = {"n": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "tools": [], "stop": None}
    assert read_asked(body("a", **neutral, logit_bias={}, store=False)).stops == ()
    who = {"user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "metadata": {"a": "b"}}
    assert read_asked(body("a", **who)) == read_asked(body("a"))


def test_json_is_asked_for_by_its_schema() -> None:
    schema = {"type": "object", "properties": {}}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert read_asked(body("a", response_format=wanted)).schema == schema
    assert read_asked(body("a", response_format={"type": "json_object"})).schema == {
        "type": "object"
    }
    assert read_asked(body("a", response_format={"type": "text"})).schema is None


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"top_k": 4}, "top_k"),
        ({"store": True}, "store"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 2.5}, "max_tokens"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": ""}, "stop.0"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            "messages.0.content",
        ),
        (
            {"messages": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "1"}]}]},
            "messages.0.tool_calls",
        ),
        ({"messages": [{"role": "user", "content": "a", "colour": None}]}, "messages.0.colour"),
        ({"response_format": {"type": "json_object"}, "stop": "x"}, "stop"),
        ({"response_format": {"type": "yaml"}}, "response_format"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(given: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as caught:
        read_asked({**body("a"), **given})
    assert (caught.value.status, caught.value.param) == (400, param)
    assert caught.value.said


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
