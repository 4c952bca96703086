"""What is found, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from serve.cache.caches import Caches
from serve.cache.near import NearIndex
from serve.cache.store import MemoryStore
from serve.gateway.contract import CacheWish, Call, Caller, Target, Task
from serve.gateway.errors import BadRequest
from serve.gateway.settings import CacheSettings
from tests.serve.cache_calls import ALL, TARGET, Clock, a_call, an_answer

CHAT = {"messages": [], "temperature": 0}
ASKED = "How do I rename a file in Linux?"
REWORDED = "Please, how do I rename a file in Linux"


def caches(clock: Clock | None = None, draw: float = 0.0, **settings: Any) -> Caches:
    clock = clock or Clock()
    configured = CacheSettings(**settings)
    store = MemoryStore(configured.bytes, clock)
    near = NearIndex(configured.bytes, clock)
    return Caches(configured, store, near, None, draw=lambda: draw)


def test_nothing_is_cached_unless_asked_for() -> None:
    assert caches().wish({}, CHAT) == CacheWish()


def test_the_configuration_or_a_header_asks() -> None:
    on = caches(exact=True)
    assert on.wish({}, CHAT).kinds == {"exact"}
    assert on.wish({"x-fupan-cache": "off"}, CHAT).kinds == frozenset()
    assert on.wish({"x-fupan-cache": "near"}, CHAT).kinds == {"near"}
    assert caches().wish({"x-fupan-cache": "Exact, near"}, CHAT).kinds == {"exact", "near"}


@pytest.mark.parametrize("value", ["on", "", "exact,off", "exact,"])
def test_a_cache_that_there_is_not_is_an_error(value: str) -> None:
    with pytest.raises(BadRequest, match="x-fupan-cache is `off`, or") as raised:
        caches().wish({"x-fupan-cache": value}, CHAT)
    assert raised.value.param == "x-fupan-cache"


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0])
def test_an_answer_at_temperature_0_may_be_shared(temperature: float) -> None:
    body = {"messages": [], "temperature": temperature}
    assert caches(exact=True).wish({}, body).kinds


@pytest.mark.parametrize("fields", [{}, {"temperature": None}, {"temperature": 0.1}])
def test_another_temperature_must_be_forced(fields: dict[str, Any]) -> None:
    on, body = caches(exact=True), {"messages": [], **fields}
    assert not on.wish({}, body).kinds
    assert not on.wish({"x-fupan-cache-force": "0"}, body).kinds
    forced = on.wish({"x-fupan-cache-force": "1"}, body)
    assert forced == CacheWish(frozenset(("exact",)))


def test_embeddings_are_determined() -> None:
    assert caches(exact=True).wish({}, {"input": "text"}).kinds == {"exact"}


def test_cache_control_is_respected() -> None:
    on = caches(exact=True)
    assert on.wish({"cache-control": "No-Store"}, CHAT) == CacheWish()
    assert on.wish({"cache-control": "no-cache"}, CHAT).fresh


async def test_an_equal_request_gets_the_same_bytes() -> None:
    ours = caches()
    body = b" " + an_answer()
    await ours.keep(a_call(), body, TARGET)
    hit = await ours.find(replace(a_call(stream=True), request_id="another"))
    assert hit is not None
    assert (hit.kind, hit.body, hit.target, hit.checked) == ("exact", body, TARGET, False)


async def test_a_fresh_request_is_not_answered_but_kept() -> None:
    ours = caches()
    fresh = a_call(wish=CacheWish(ALL, fresh=True))
    await ours.keep(a_call(), an_answer("old"))
    assert await ours.find(fresh) is None
    await ours.keep(fresh, an_answer("new"))
    hit = await ours.find(a_call())
    assert hit is not None
    assert b"new" in hit.body


async def test_who_wishes_nothing_neither_finds_nor_keeps() -> None:
    ours = caches()
    nothing = a_call(wish=CacheWish())
    await ours.keep(nothing, an_answer())
    assert await ours.find(a_call()) is None
    await ours.keep(a_call(), an_answer())
    assert await ours.find(nothing) is None


@pytest.mark.parametrize(
    "body",
    [
        an_answer(finish_reason="length"),
        an_answer(finish_reason="content_filter"),
        b'{"choices": [{"message": {"content": "a"}, "finish_reason": ["stop"]}]}',
        an_answer(None),
        an_answer("No.", refusal="No."),
        b'{"choices": []}',
        b'{"error": {"message": "no"}}',
        b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}',
        b"[]",
    ],
)
async def test_what_is_not_whole_and_good_is_not_kept(body: bytes) -> None:
    ours = caches()
    await ours.keep(a_call(), body)
    assert await ours.find(a_call()) is None


async def test_one_bad_choice_of_two_is_not_kept() -> None:
    ours = caches()
    body = orjson.loads(an_answer())
    body["choices"].append({**body["choices"][0], "finish_reason": "length"})
    await ours.keep(a_call(), orjson.dumps(body))
    assert await ours.find(a_call()) is None


async def test_calls_of_tools_are_kept() -> None:
    ours = caches()
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    await ours.keep(a_call(), an_answer(None, "tool_calls", tool_calls=[call]))
    assert await ours.find(a_call()) is not None


async def test_vectors_are_kept() -> None:
    ours = caches()
    call = replace(a_call(), endpoint="embeddings", body={"model": "m", "input": ["a", "b"]})
    await ours.keep(call, b'{"data": [{"embedding": [0.5]}, {"embedding": []}]}')
    assert await ours.find(call) is None
    await ours.keep(call, b'{"data": [{"embedding": [0.5]}, {"embedding": "AAAA"}]}')
    assert await ours.find(call) is not None
    assert await ours.find(replace(call, body={"model": "m", "input": ["b", "a"]})) is None


async def test_a_fallback_to_another_model_is_not_kept() -> None:
    ours = caches()
    fallback, same_model = Target("other", "another"), Target("other", "model")
    call = a_call(targets=(TARGET, fallback))
    await ours.keep(call, an_answer(), fallback)
    assert await ours.find(call) is None
    await ours.keep(call, an_answer(), same_model)
    hit = await ours.find(call)
    assert hit is not None
    assert hit.target == same_model


async def test_an_answer_leaves_after_its_time_and_its_question_with_it() -> None:
    clock = Clock()
    ours = caches(clock, ttl=100)
    await ours.keep(a_call(ASKED), an_answer())
    clock.now += 89
    assert await ours.find(a_call(REWORDED)) is not None
    clock.now += 22
    assert await ours.find(a_call(ASKED)) is None
    assert await ours.find(a_call(REWORDED)) is None


async def test_a_reworded_question_is_near_only_where_near_is_wished() -> None:
    ours = caches()
    await ours.keep(a_call(ASKED), an_answer())
    hit = await ours.find(a_call(REWORDED))
    assert hit is not None
    assert hit.kind == "near"
    exact = a_call(REWORDED, wish=CacheWish(frozenset(("exact",))))
    assert await ours.find(exact) is None


async def test_a_forgotten_hit_answers_only_the_equal_question() -> None:
    ours = caches()
    await ours.keep(a_call(ASKED), an_answer())
    hit = await ours.find(a_call(REWORDED))
    assert hit is not None
    ours.forget(hit)
    assert await ours.find(a_call(REWORDED)) is None
    assert await ours.find(a_call(ASKED)) is not None


async def test_a_question_whose_answer_is_gone_is_forgotten() -> None:
    clock = Clock()
    store, near = MemoryStore(10_000, clock), NearIndex(10_000, clock)
    ours = Caches(CacheSettings(), store, near, None)
    await ours.keep(a_call(ASKED), an_answer())
    assert len(near) == 1
    await store.delete(ours.key(a_call(ASKED)))
    assert await ours.find(a_call(REWORDED)) is None
    assert len(near) == 0


OTHER_PARTITIONS: dict[str, Call] = {
    "tenant": a_call(REWORDED, caller=Caller("key", "another")),
    "model": a_call(REWORDED, targets=(Target("main", "another"),)),
    "provider": a_call(REWORDED, targets=(Target("another", "model"),)),
    "system message": a_call(
        messages=[{"role": "system", "content": "Be long."}, {"role": "user", "content": REWORDED}]
    ),
    "earlier turn": a_call(
        messages=[
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": REWORDED},
        ]
    ),
    "tools": a_call(REWORDED, tools=[{"type": "function", "function": {"name": "f"}}]),
    "tool_choice": a_call(REWORDED, tool_choice="none"),
    "response_format": a_call(REWORDED, response_format={"type": "json_object"}),
    "temperature": a_call(REWORDED, temperature=0.5),
    "max_tokens": a_call(REWORDED, max_tokens=10),
    "task": a_call(REWORDED, task=Task("classification", 10, 15)),
    "unknown parameter": a_call(REWORDED, enable_thinking=True),
}


@pytest.mark.parametrize("other", OTHER_PARTITIONS.values(), ids=OTHER_PARTITIONS)
async def test_nothing_is_found_in_another_partition(other: Call) -> None:
    ours = caches()
    await ours.keep(a_call(ASKED), an_answer())
    await ours.keep(a_call(REWORDED), an_answer())
    assert await ours.find(other) is None
    assert await ours.find(a_call(REWORDED)) is not None


@pytest.mark.parametrize(("draw", "checked"), [(0.19, True), (0.2, False)])
async def test_a_share_of_near_hits_is_checked(draw: float, checked: bool) -> None:
    ours = caches(draw=draw, recheck=0.2)
    await ours.keep(a_call(ASKED), an_answer())
    near, exact = await ours.find(a_call(REWORDED)), await ours.find(a_call(ASKED))
    assert near is not None
    assert exact is not None
    assert (near.checked, exact.checked) == (checked, False)
