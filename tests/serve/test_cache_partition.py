"""Which requests share an answer."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.cache.partition import canonical, place_of
from serve.gateway.contract import Caller, Target, Task
from tests.serve.cache_calls import a_call

# Beyond 2**53 a float and the integer it equals are told apart, which costs a hit.
SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def _retyped(value: Any, seed: random.Random) -> Any:
    """The same value with its keys in another order, and whole numbers as floats or the other way
    round."""
    if isinstance(value, dict):
        items = list(value.items())
        seed.shuffle(items)
        return {name: _retyped(each, seed) for name, each in items}
    if isinstance(value, list):
        return [_retyped(each, seed) for each in value]
    if type(value) is int and seed.random() < 0.5:
        return float(value)
    if value == 0 and type(value) in (int, float):
        return seed.choice([0, 0.0, -0.0])
    return value


@given(JSON, st.integers())
def test_equal_values_have_one_form(value: Any, seed: int) -> None:
    assert canonical(_retyped(value, random.Random(seed))) == canonical(value)


@given(JSON, JSON)
def test_different_values_have_different_forms(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == _equal(one, other)


def _equal(one: Any, other: Any) -> bool:
    """Equality as JSON has it, where true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def test_what_decides_nothing_is_left_out() -> None:
    plain = place_of(a_call())
    free: dict[str, Any] = {
        "stream_options": {"include_usage": True},
        "user": "someone",
        "safety_identifier": "hash",
        "prompt_cache_key": "app",
        "metadata": {"a": "b"},
        "store": True,
    }
    assert place_of(a_call(stream=True, **free)) == plain
    assert place_of(replace(a_call(), name="another name of it", estimate=7)) == plain
    assert place_of(a_call(caller=Caller("another key", "tenant"))) == plain


IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
SYSTEM = {"role": "system", "content": "Be short."}
ASKED = {"role": "user", "content": "How do I rename a file in Linux?"}
OTHERS = {
    "tenant": a_call(caller=Caller("key", "another")),
    "provider": a_call(targets=(Target("other", "model"),)),
    "model": a_call(targets=(Target("main", "another"),)),
    "system message": a_call(messages=[{**SYSTEM, "content": "Be long."}, ASKED]),
    "no system message": a_call(messages=[ASKED]),
    "earlier turn": a_call(
        messages=[SYSTEM, {"role": "user", "content": "Hi"}, {"role": "assistant"}, ASKED]
    ),
    "name of the user": a_call(messages=[SYSTEM, {**ASKED, "name": "Ann"}]),
    "tools": a_call(tools=[{"type": "function", "function": {"name": "f"}}]),
    "tool_choice": a_call(tool_choice="none"),
    "response_format": a_call(response_format={"type": "json_object"}),
    "temperature": a_call(temperature=1),
    "seed": a_call(seed=1),
    "n": a_call(n=2),
    "logprobs": a_call(logprobs=True),
    "max_tokens": a_call(max_tokens=10),
    "a task's limit": a_call(task=Task("classification", 10, 15)),
    "unknown parameter": a_call(enable_thinking=False),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_decides_parts(other: Any) -> None:
    ours, theirs = place_of(a_call()), place_of(other)
    assert ours.key != theirs.key
    assert ours.partition != theirs.partition


def test_endpoints_are_apart() -> None:
    body = {"model": "m", "input": "text"}
    one = replace(a_call(), body=body, endpoint="embeddings")
    other = replace(a_call(), body=body)
    assert place_of(one).key != place_of(other).key
    assert place_of(one).text is None


def test_a_task_decides_nothing_where_the_body_sets_its_own_limit() -> None:
    task = Task("classification", 10, 15)
    assert place_of(a_call(max_tokens=5, task=task)) == place_of(a_call(max_tokens=5))


def test_only_the_last_thing_the_user_said_may_differ() -> None:
    one, other = place_of(a_call("one")), place_of(a_call("other"))
    assert one.partition == other.partition
    assert one.key != other.key
    assert (one.text, other.text) == ("one", "other")


def test_an_image_or_a_last_word_of_a_tool_is_compared_whole() -> None:
    shown = place_of(a_call([{"type": "text", "text": "What is this?"}, *IMAGE]))
    answered = place_of(a_call(messages=[ASKED, {"role": "tool", "content": "42"}]))
    assert shown.text is None
    assert answered.text is None
    assert shown.key != place_of(a_call([{"type": "text", "text": "And this?"}, *IMAGE])).key


@given(st.text(), st.text())
def test_text_and_what_stands_before_do_not_run_together(before: str, text: str) -> None:
    def place(first: str, last: str) -> bytes:
        call = a_call(messages=[{"role": "user", "content": each} for each in (first, last)])
        return place_of(call).key

    assert (place(before, text) == place(before + text, "")) == (text == "")
    assert (place(before, text) == place(text, before)) == (before == text)


def test_the_order_of_keys_in_messages_does_not_matter() -> None:
    turned = orjson.loads(b'{"content":"How do I rename a file in Linux?","role":"user"}')
    assert place_of(a_call(messages=[SYSTEM, turned])) == place_of(a_call())
