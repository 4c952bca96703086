"""The most that a request may cost: never less than a provider may bill."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.settings import Provider
from serve.ask.tokens import count
from serve.gateway.bound import Costs
from serve.gateway.settings import GatewaySettings
from serve.gateway.terms import terms_of
from tests.serve.cache_calls import a_call

PRICES = {"currency": "CNY", "input": 1_000_000, "output": 0}
"""A token in costs 1, one out nothing."""
CONTEXT = 4_000
IMAGE = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FILE = {"type": "file", "file": {"file_id": "f"}}

texts = st.text(max_size=30) | st.sampled_from(
    ["0123456789" * 9, "{}[]();:,.!?" * 9, "数据库" * 20]
)


def costs_of(provider: Provider) -> Costs:
    return Costs(terms_of(GatewaySettings(providers={"main": provider})))


def most(content: Any, context: int | None = CONTEXT, **fields: Any) -> int:
    """The tokens that a chat is held for."""
    about = {} if context is None else {"context": context}
    provider = Provider.model_validate(
        {"base_url": "http://127.0.0.1:9/v1", "models": ["model"], "prices": PRICES, **about}
    )
    cost = costs_of(provider).most(a_call(content, max_tokens=1, **fields), "CNY")
    assert cost is not None
    return int(cost)


@given(texts, texts)
def test_no_text_has_more_tokens_than_are_held(text: str, hidden: str) -> None:
    held = most(text, prediction={"type": "content", "content": hidden})
    assert held >= count(text) + count(hidden)


def test_a_small_chat_is_held_for_little_more_than_its_bytes() -> None:
    call = a_call("Hi.", max_tokens=1)
    assert most("Hi.") <= len(orjson.dumps(call.body)) + 10


def test_what_does_not_fit_the_context_costs_no_more() -> None:
    assert most("1" * 100_000) == CONTEXT
    assert most("1" * 100_000, context=None) > 100_000


@pytest.mark.parametrize(
    "part", [IMAGE, SOUND, FILE, {"type": "video"}, {"type": ["text"]}, {"image_url": "u"}]
)
def test_what_a_few_bytes_name_may_fill_the_context(part: dict[str, Any]) -> None:
    assert most([{"type": "text", "text": "What is it?"}, part]) == CONTEXT
    assert most([{"type": "text", "text": "What is it?"}]) < 300
    assert most(part) == CONTEXT


def test_inputs_to_be_embedded_have_a_context_each() -> None:
    call = replace(
        a_call(), endpoint="embeddings", body={"model": "model", "input": ["1" * 3_000] * 3}
    )
    provider = Provider.model_validate(
        {"base_url": "http://h/v1", "models": ["model"], "prices": PRICES, "context": CONTEXT}
    )
    assert (costs_of(provider).most(call, "CNY") or Decimal(0)) > 9_000
