"""How many hits were wrong: a share of them is asked live."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from serve.cache.caches import Hit
from serve.cache.recheck import GATEWAY, Rechecks, same_answer
from serve.gateway.contract import CacheWish, Call, Whole
from serve.gateway.errors import ProviderDown
from tests.serve.cache_calls import a_call, an_answer


class Live:
    """The provider, and what is kept of its answers."""

    def __init__(self, text: str = "Use mv.") -> None:
        self.text = text
        self.more: dict[str, Any] = {}
        self.calls: list[Call] = []
        self.kept: list[tuple[Call, bytes]] = []
        self.forgotten: list[Hit] = []
        self.go = asyncio.Event()
        self.go.set()
        self.down = False

    async def ask(self, call: Call) -> Whole:
        self.calls.append(call)
        await self.go.wait()
        if self.down:
            raise ProviderDown("down")
        return Whole(an_answer(self.text, **self.more))

    async def keep(self, call: Call, answer: Whole) -> None:
        self.kept.append((call, answer.body))

    def rechecks(self, most: int = 4) -> Rechecks:
        return Rechecks(self.ask, self.keep, self.forgotten.append, most)


HIT = Hit("near", an_answer("Use mv."), checked=True)


async def test_a_hit_that_the_provider_confirms_is_not_wrong() -> None:
    live = Live()
    rechecks = live.rechecks()
    rechecks.start(a_call(), HIT)
    await rechecks.idle()
    assert (rechecks.checked["near"], rechecks.wrong["near"]) == (1, 0)
    assert live.forgotten == []


async def test_a_hit_that_it_does_not_is_counted_forgotten_and_its_answer_kept() -> None:
    live = Live("Use cp.")
    rechecks = live.rechecks()
    call = a_call()
    rechecks.start(call, HIT)
    await rechecks.idle()
    assert (rechecks.checked["near"], rechecks.wrong["near"]) == (1, 1)
    assert live.forgotten == [HIT]
    assert live.kept == [(call, an_answer("Use cp."))]


async def test_it_is_asked_whole_past_the_caches_and_for_the_gateway() -> None:
    live = Live()
    rechecks = live.rechecks()
    rechecks.start(a_call(stream=True, stream_options={"include_usage": True}), HIT)
    await rechecks.idle()
    (call,) = live.calls
    assert not call.stream
    assert not {"stream", "stream_options"} & call.body.keys()
    assert call.wish == CacheWish()
    assert (call.caller.key, call.caller.tenant) == (GATEWAY.key, "tenant")


async def test_a_provider_that_fails_tells_nothing() -> None:
    live = Live()
    live.down = True
    rechecks = live.rechecks()
    rechecks.start(a_call(), HIT)
    await rechecks.idle()
    assert (rechecks.checked["near"], rechecks.failed["near"], live.kept) == (0, 1, [])


async def test_only_so_many_at_once() -> None:
    live = Live()
    live.go.clear()
    rechecks = live.rechecks(most=2)
    for _ in range(5):
        rechecks.start(a_call(), HIT)
    assert rechecks.skipped["near"] == 3
    live.go.set()
    await rechecks.idle()
    assert (rechecks.checked["near"], len(live.calls)) == (2, 2)
    rechecks.start(a_call(), HIT)
    await rechecks.idle()
    assert rechecks.checked["near"] == 3


async def test_what_is_under_way_ends_with_the_gateway() -> None:
    live = Live()
    live.go.clear()
    rechecks = live.rechecks()
    rechecks.start(a_call(), HIT)
    await rechecks.aclose()
    await rechecks.idle()
    assert rechecks.checked["near"] == 0


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
OTHER_CALL = {"id": "2", "type": "function", "function": {"name": "f", "arguments": '{"a": 2}'}}
LONG = "Orders are exported from the account page. Open it, press export and pick a format. " * 4


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (an_answer("Paris."), an_answer("Paris."), True),
        (an_answer("It is Paris."), an_answer("It is Paris"), True),
        (an_answer("It is Paris."), an_answer("It is Rome."), False),
        (an_answer("It costs 5 euros."), an_answer("It costs 6 euros."), False),
        (an_answer("可以退款。"), an_answer("不可以退款。"), False),
        (an_answer(LONG + "It takes 5 days."), an_answer(LONG + "That takes 5 days."), True),
        (an_answer(LONG + "It takes 5 days."), an_answer(LONG + "It takes 6 days."), False),
        (an_answer(LONG), an_answer("No."), False),
        (
            an_answer(None, tool_calls=[CALL]),
            an_answer(None, tool_calls=[{**CALL, "id": "9"}]),
            True,
        ),
        (an_answer(None, tool_calls=[CALL]), an_answer(None, tool_calls=[OTHER_CALL]), False),
        (an_answer(None, tool_calls=[CALL]), an_answer("Paris."), False),
    ],
)
def test_which_answers_are_the_same(one: bytes, other: bytes, same: bool) -> None:
    assert same_answer(one, other) is same


ODD_CALLS = (7, "f", {"a": 1}, [None], ["f"], [[CALL]])
ODD = [
    *(an_answer("Use mv.", tool_calls=calls) for calls in ODD_CALLS),
    b'{"choices": [{"message": "Use cp."}]}',
    b'{"choices": [{"message": ["Use mv."]}]}',
    b'{"choices": [{"message": {"content": "Use mv."}}, 7]}',
    b'{"choices": 7}',
    b"[]",
]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_is_the_same_as_itself_and_as_none_that_is_not(odd: bytes) -> None:
    assert same_answer(odd, odd)
    assert not same_answer(odd, HIT.body)
    assert not same_answer(HIT.body, odd)


def test_an_answer_too_deep_to_be_compared_is_not_the_same() -> None:
    deep = b"[" * 1015 + b"]" * 1015
    for message in (b'{"tool_calls": %b}' % deep, b'{"content": %b}' % deep):
        odd = b'{"choices": [{"message": %b}]}' % message
        assert not same_answer(odd, HIT.body)
        assert not same_answer(HIT.body, odd)


@pytest.mark.parametrize("calls", ODD_CALLS)
async def test_an_odd_answer_is_wrong_and_no_error(calls: object) -> None:
    live = Live()
    live.more = {"tool_calls": calls}
    rechecks = live.rechecks()
    rechecks.start(a_call(), HIT)
    await rechecks.idle()
    assert (rechecks.checked["near"], rechecks.wrong["near"]) == (1, 1)
    assert live.forgotten == [HIT]
    assert len(live.kept) == 1
