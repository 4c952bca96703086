"""What decides the bill of an attempt: all that is sent, and the longest answer there may be."""

from __future__ import annotations

from typing import Any

import pytest

from serve.ask.billing import call_of
from serve.ask.capabilities import Capabilities, build_body
from serve.ask.contract import Request
from serve.ask.settings import Provider
from serve.ask.spend import Call

CONTEXT = 8192


def _call(
    words: int = 10, capabilities: Capabilities | None = None, max_output: int = 300, **extra: Any
) -> Call:
    request = Request("Answer.", "word " * words, max_output, 0, 60.0, {"type": "object"})
    body = build_body(request, "m", capabilities or Capabilities(), extra)
    return call_of(body, request, CONTEXT)


def test_all_that_is_sent_is_counted() -> None:
    plain = _call()
    tools = [{"type": "function", "function": {"name": "look", "description": "word " * 500}}]
    assert plain.estimate_in + 500 < _call(tools=tools).estimate_in < plain.estimate_in + 600
    assert _call(prompt="word " * 500).estimate_in > plain.estimate_in + 400
    assert _call(top_k=1, thinking=False).estimate_in == plain.estimate_in


def test_the_longest_answer_is_the_one_that_is_asked_for() -> None:
    assert _call().max_output == 300
    assert _call(max_tokens=900).max_output == 900
    assert _call(max_completion_tokens=900, n=3).max_output == 2700


def test_where_no_limit_is_taken_an_answer_may_fill_the_context() -> None:
    endless = Capabilities(output_limit="none")
    assert _call(10, endless).max_output == CONTEXT
    # By our count nothing is left, but the provider may count less, or take more.
    assert _call(9000, endless).max_output == CONTEXT
    assert _call(10, endless, max_output=10_000).max_output == 10_000


@pytest.mark.parametrize("name", ["model", "messages"])
def test_what_is_asked_and_of_whom_is_not_for_extra_body_to_say(name: str) -> None:
    with pytest.raises(ValueError, match=f"extra_body sets {name}"):
        Provider.model_validate(
            {"base_url": "https://x/v1", "models": ["m"], "extra_body": {name: "x"}}
        )
