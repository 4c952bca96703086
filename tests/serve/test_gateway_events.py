"""Events of a stream: however they are cut on the wire, joined, put together or made anew."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.chunks import assemble, cut
from serve.gateway.events import (
    DONE,
    MOST_EVENT,
    EventReader,
    event,
    payload_of,
)
from serve.gateway.joined import Joiner
from tests.serve.event_reading import read_events

TEXT = st.text(max_size=60)
LINES = st.sampled_from(["\n", "\r\n"])


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Bytes of a stream, with comments, other fields and data of several lines, and its
    payloads."""
    sent, payloads = b"", []
    end = draw(LINES)
    for _ in range(draw(st.integers(0, 6))):
        lines = draw(st.lists(st.from_regex(r"[ -~é你]{0,12}", fullmatch=True), max_size=3))
        space = draw(st.sampled_from(["", " "]))
        others = draw(st.sampled_from(["", f": ping{end}", f"event: message{end}id: 7{end}"]))
        lines = [line.lstrip() for line in lines]
        block = others + "".join(f"data:{space}{line}{end}" for line in lines)
        sent += f"{block}{end}".encode()
        payload = " ".join(lines).encode()
        payloads += [payload] if payload else []
    return sent, payloads


def pieces_of(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(ends)]


def read(chunks: Sequence[bytes]) -> list[bytes]:
    reader = EventReader()
    return [payload for chunk in chunks for payload in reader.feed(chunk)] + reader.end()


@settings(max_examples=50)
@given(streams(), st.lists(st.integers(0, 10_000), max_size=12))
def test_payloads_do_not_depend_on_how_the_bytes_come(
    stream: tuple[bytes, list[bytes]], places: list[int]
) -> None:
    sent, payloads = stream
    assert read(pieces_of(sent, places)) == payloads
    assert read([bytes([byte]) for byte in sent]) == payloads


@pytest.mark.parametrize(
    "ending", [b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r\n", b"data:[DONE]\r"]
)
async def test_an_event_without_its_end_is_none_unless_it_is_the_last_word(ending: bytes) -> None:
    async def given_(*chunks: bytes) -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    cut_off = given_(b'data: {"a":1}\n\ndata: {"b":')
    assert [payload async for payload in read_events(cut_off)] == [b'{"a":1}']
    ended = given_(b'data: {"a":1}\n\n', ending)
    assert [payload async for payload in read_events(ended)] == [b'{"a":1}', DONE]


def test_an_event_that_never_ends_is_an_error_and_does_not_fill_the_memory() -> None:
    reader = EventReader()
    reader.feed(b"data: " + b"x" * (MOST_EVENT - 10))
    with pytest.raises(ValueError, match="event of more than"):
        reader.feed(b"x" * 10)


def test_an_event_in_many_pieces_takes_no_longer_than_its_bytes() -> None:
    reader = EventReader()
    pieces = MOST_EVENT // 1024 - 1
    since = time.process_time()
    assert reader.feed(b"data: ") == []
    for _ in range(pieces):
        assert reader.feed(b"x" * 1024) == []
    assert reader.feed(b"\n\n") == [b"x" * 1024 * pieces]
    # Milliseconds; looked at from its start with each piece, it would be many seconds.
    assert time.process_time() - since < 1


def test_data_of_several_lines_is_one_line_when_it_is_sent_on() -> None:
    pretty = orjson.dumps({"a": {"b": 1}}, option=orjson.OPT_INDENT_2)
    sent = b"".join(b"data: " + line + b"\n" for line in pretty.split(b"\n")) + b"\n"
    (payload,) = read([sent])
    assert read([event(payload)]) == [payload]
    assert orjson.loads(payload) == {"a": {"b": 1}}


@pytest.mark.parametrize("sent", [b"\xef\xbb\xbfdata: 1\n\n", b"\xef\xbb\xbf\r\ndata:1\r\n\r\n"])
def test_a_byte_order_mark_before_the_first_event_is_skipped(sent: bytes) -> None:
    assert read([sent]) == read([bytes([byte]) for byte in sent]) == [b"1"]
    assert read([b"\xef\xbb\xbfdata: [DONE]"]) == [DONE]


@st.composite
def completions(draw: st.DrawFn) -> dict[str, Any]:
    """Whole completions as providers send them."""
    function = st.fixed_dictionaries({"name": st.just("look_up"), "arguments": TEXT})
    call = st.fixed_dictionaries(
        {"id": st.text("abc123", min_size=1), "type": st.just("function"), "function": function}
    )
    message = st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | TEXT},
        optional={
            "refusal": st.none() | TEXT,
            "reasoning_content": TEXT,
            "tool_calls": st.lists(call, min_size=1, max_size=3),
            "annotations": st.lists(st.just({"type": "url_citation"}), max_size=2),
        },
    )
    token = st.fixed_dictionaries({"token": TEXT, "logprob": st.just(-0.5)})
    logprobs = st.none() | st.fixed_dictionaries(
        {"content": st.none() | st.lists(token, min_size=1, max_size=3), "refusal": st.none()}
    )
    reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])
    choices = [
        {
            "index": index,
            "message": draw(message),
            "finish_reason": draw(reasons),
            **draw(st.fixed_dictionaries({}, optional={"logprobs": logprobs})),
            **draw(st.fixed_dictionaries({}, optional={"stop_reason": st.none()})),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    return {
        "id": "chatcmpl-1",
        "created": 1,
        "model": "m",
        "object": "chat.completion",
        **draw(st.fixed_dictionaries({}, optional={"system_fingerprint": st.none() | TEXT})),
        "choices": choices,
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }


def whole(events: Sequence[bytes]) -> Any:
    return orjson.loads(assemble([payload_of(each) for each in events]))


@settings(max_examples=30)
@given(completions())
def test_a_completion_that_was_cut_is_put_together_again(completion: dict[str, Any]) -> None:
    assert whole(cut(orjson.dumps(completion), include_usage=True)) == completion


@settings(max_examples=30)
@given(completions())
def test_the_count_of_tokens_is_there_only_where_it_was_asked_for(
    completion: dict[str, Any],
) -> None:
    data = orjson.dumps(completion)
    plain = [orjson.loads(payload_of(each)) for each in cut(data, include_usage=False)[:-1]]
    assert not any("usage" in chunk for chunk in plain)
    counted = [orjson.loads(payload_of(each)) for each in cut(data, include_usage=True)[:-1]]
    assert [chunk["usage"] for chunk in counted[:-1]] == [None] * (len(counted) - 1)
    assert counted[-1]["usage"] == completion["usage"]
    assert counted[-1]["choices"] == []


@settings(max_examples=30)
@given(completions(), st.integers(1, 6))
def test_joined_events_say_the_same_in_the_same_order(
    completion: dict[str, Any], tokens: int
) -> None:
    events = cut(orjson.dumps(completion), include_usage=True)
    joiner = Joiner(tokens)
    joined = [sent for each in events for sent in joiner.feed(each)]
    assert joiner.flush() == []
    assert joined[-1] == event(DONE)
    assert len(joined) <= len(events)
    assert whole(joined) == completion


def test_text_comes_a_few_tokens_at_a_time() -> None:
    def piece(text: str, **choice: Any) -> bytes:
        delta = {"content": text} if text else {}
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]}
        return event(orjson.dumps(chunk))

    joiner = Joiner(3)
    assert joiner.feed(piece("one")) == []
    assert joiner.feed(piece(" two")) == []
    (sent,) = joiner.feed(piece(" three"))
    assert orjson.loads(payload_of(sent))["choices"][0]["delta"]["content"] == "one two three"
    assert joiner.feed(piece(" four")) == []
    held, last = joiner.feed(piece("", finish_reason="stop"))
    assert b" four" in held
    assert b'"stop"' in last


def test_what_is_nested_too_deep_to_be_written_is_sent_as_it_came() -> None:
    deep = orjson.dumps({"choices": [{"index": 0, "delta": {"content": "one"}}]})
    deep = event(deep[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}")
    joiner = Joiner(4)
    assert joiner.feed(deep) == joiner.feed(deep) == []
    assert joiner.feed(event(DONE)) == [deep, deep, event(DONE)]


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        [b'{"choices":[{"index":0,"delta":{"content":"a"}}]}'],
        [b'{"error":{"message":"no"}}', DONE],
        [b"<html>", DONE],
        [b'{"choices":[7]}', DONE],
        [b'{"choices":[]}', DONE],
        [b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0},7,{"index":1}]}}]}', DONE],
    ],
)
def test_what_is_no_whole_stream_makes_no_completion(payloads: list[bytes]) -> None:
    with pytest.raises(ValueError, match="stream"):
        assemble(payloads)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices":[3]}', b'{"choices":{}}'])
def test_what_is_no_completion_is_not_cut(body: bytes) -> None:
    with pytest.raises(ValueError, match="no chat completion"):
        cut(body, include_usage=False)


def test_calls_of_tools_that_come_in_pieces_are_put_together() -> None:
    def chunk(**delta: Any) -> bytes:
        return orjson.dumps({"id": "x", "choices": [{"index": 0, "delta": delta}]})

    one = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    two = {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}}
    made = orjson.loads(
        assemble(
            [
                chunk(role="assistant", content=None),
                chunk(tool_calls=[one]),
                chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"x":'}}]),
                chunk(tool_calls=[two]),
                # Some servers name the call again with each piece of it.
                chunk(tool_calls=[{**one, "function": {"name": "f", "arguments": "1}"}}]),
                chunk(tool_calls=[{"index": 1, "function": {"arguments": "}"}}]),
                DONE,
            ]
        )
    )
    calls = made["choices"][0]["message"]["tool_calls"]
    assert [(c["id"], c["function"]) for c in calls] == [
        ("a", {"name": "f", "arguments": '{"x":1}'}),
        ("b", {"name": "g", "arguments": "{}"}),
    ]
