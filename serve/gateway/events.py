"""Server-sent events of a chat: read, joined, put together to one completion, cut again. Pure.

A payload is what an event carries after `data:`; an event is that with its frame, as it is sent.
Invariant: however the bytes of a stream are cut on the wire, its payloads are the same; what is
put together from the events that a completion was cut into is that completion.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any

import orjson

from serve.ask.tokens import count

DONE = b"[DONE]"
"""The payload that ends a stream of chat completions."""
MOST_EVENT = 4 * 2**20
"""Bytes of one event: more than any answer of a model has."""
PIECE_CHARACTERS = 24
"""Of the text in one event of a completion that is cut: about a line of reading a second at the
pace at which models write."""


class EventReader:
    """Bytes as they come -> payloads as they are complete."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that are complete now. Raises ValueError where an event does not end."""
        data = self._rest + chunk
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):  # half of a line's end, or all of it
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        blocks = data.split(b"\n\n")
        self._rest = blocks.pop() + held
        if len(self._rest) > MOST_EVENT:
            raise ValueError(f"an event of more than {MOST_EVENT} bytes")
        return [payload for block in blocks if (payload := _payload(block))]

    def end(self) -> list[bytes]:
        """What the end of the bytes completes: `[DONE]`, which some send without an empty line
        after it. Another event without its end is cut off, and nothing."""
        return [DONE] if _payload(self._rest.replace(b"\r", b"\n")) == DONE else []


def _payload(block: bytes) -> bytes:
    """What an event's lines carry; empty for a comment or an event without data."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    values = [
        line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")
    ]
    return b"\n".join(values)


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The payloads in `chunks`. Raises ValueError where an event does not end."""
    reader = EventReader()
    async for chunk in chunks:
        for payload in reader.feed(chunk):
            yield payload
    for payload in reader.end():
        yield payload


def event(data: bytes) -> bytes:
    """The event that carries `data`, which is JSON on one line, or DONE."""
    return b"data: " + data + b"\n\n"


def payload_of(event_: bytes) -> bytes:
    """What a whole event, as `event` makes it, carries."""
    return event_[6:-2]


class Joiner:
    """Joins the text of events in a row until `tokens` tokens have come, for networks on which
    every packet costs. Nothing else is joined, and nothing overtakes."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._held: dict[str, Any] | None = None
        self._texts: list[str] = []

    def feed(self, event_: bytes) -> list[bytes]:
        """The events to send now that `event_` has come; `[DONE]` sends all that was held back."""
        if self._tokens < 2:
            return [event_]
        chunk = _parsed(payload_of(event_))
        text = _text_alone(chunk)
        if chunk is None or text is None:
            return [*self.flush(), event_]
        sent = []
        if self._held is not None and _index(self._held) != _index(chunk):
            sent = self.flush()
        if self._held is None:
            self._held = chunk
        self._texts.append(text)
        if count("".join(self._texts)) >= self._tokens:
            sent += self.flush()
        return sent

    def flush(self) -> list[bytes]:
        """The event that was held back, if one was: for a stream that ends early."""
        if self._held is None:
            return []
        self._held["choices"][0]["delta"]["content"] = "".join(self._texts)
        joined = event(orjson.dumps(self._held))
        self._held, self._texts = None, []
        return [joined]


def _parsed(payload: bytes) -> dict[str, Any] | None:
    try:
        chunk = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return chunk if isinstance(chunk, dict) else None


def _index(chunk: Mapping[str, Any]) -> object:
    return chunk["choices"][0].get("index")


def _text_alone(chunk: Mapping[str, Any] | None) -> str | None:
    """The text of a chunk that holds a piece of text and nothing besides."""
    if chunk is None or chunk.get("usage"):
        return None
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice = choices[0]
    delta = choice.get("delta")
    if not isinstance(delta, dict) or choice.get("finish_reason") or choice.get("logprobs"):
        return None
    text = delta.get("content")
    others = any(value for name, value in delta.items() if name != "content")
    return text if isinstance(text, str) and text and not others else None


def assemble(payloads: Sequence[bytes]) -> bytes:
    """The completion that a whole stream of chunks makes. Raises ValueError for a stream that was
    cut off, holds an error, or what is no chunk."""
    if not payloads or payloads[-1] != DONE:
        raise ValueError("the stream does not end with [DONE]")
    try:
        return _assembled(payloads[:-1])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("the stream holds what is no chunk of a completion") from error


def _assembled(payloads: Sequence[bytes]) -> bytes:
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for payload in payloads:
        chunk = _parsed(payload)
        if chunk is None or "error" in chunk or not isinstance(chunk.get("choices"), list):
            raise ValueError("the stream holds what is no chunk of a completion")
        for name, value in chunk.items():
            if name != "choices" and (value is not None or name not in whole):
                whole[name] = value
        for given in chunk["choices"]:
            index = given.get("index", 0)
            choice = choices.setdefault(index, {"index": index, "message": {}})
            _add(choice["message"], given.get("delta") or {})
            for name, value in given.items():
                if name == "logprobs":
                    choice[name] = _more_logprobs(choice.get(name), value)
                elif name not in ("index", "delta") and (value is not None or name not in choice):
                    choice[name] = value
    if not choices:
        raise ValueError("the stream holds no choice")
    usage = whole.pop("usage", None)
    whole["object"] = "chat.completion"
    whole["choices"] = [_finished(choices[index]) for index in sorted(choices)]
    if usage is not None:
        whole["usage"] = usage
    return orjson.dumps(whole)


_WHOLE_STRINGS = frozenset(("role", "id", "type", "name", "index"))
"""Fields of a delta that are never sent in pieces; some servers send them again with each."""


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to what has come: texts and lists grow, objects are filled."""
    for name, value in delta.items():
        had = message.get(name)
        if had is None or value is None:
            message[name] = value if had is None else had
            if isinstance(value, list):
                message[name] = []
                _extend(message[name], value)
        elif isinstance(had, str) and isinstance(value, str) and name not in _WHOLE_STRINGS:
            message[name] = had + value
        elif isinstance(had, list) and isinstance(value, list):
            _extend(had, value)
        elif isinstance(had, dict) and isinstance(value, dict):
            _add(had, value)
        elif value != "":
            message[name] = value


def _extend(had: list[Any], more: Sequence[Any]) -> None:
    """Items with an `index` (calls of tools) are told apart by it, others come in order."""
    for item in more:
        if not isinstance(item, dict) or "index" not in item:
            had.append(item)
            continue
        known = next((each for each in had if each.get("index") == item["index"]), None)
        if known is None:
            known = {}
            had.append(known)
        _add(known, item)


def _more_logprobs(had: Any, more: Any) -> Any:
    if not isinstance(had, dict) or not isinstance(more, dict):
        return more if isinstance(more, dict) else had
    return {
        name: [*(had.get(name) or ()), *(more.get(name) or ())]
        if had.get(name) or more.get(name)
        else None
        for name in {**had, **more}
    }


def _finished(choice: dict[str, Any]) -> dict[str, Any]:
    for calls in choice["message"].values():
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    call.pop("index", None)
    return choice


def cut(completion: bytes, include_usage: bool) -> list[bytes]:
    """The events of a stream that carries `completion`, a whole one, `[DONE]` the last. Raises
    ValueError for what is none."""
    whole = _parsed(completion)
    try:
        if whole is not None and whole.get("choices"):
            return _cut(whole, include_usage)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no chat completion") from error
    raise ValueError("no chat completion")


def _cut(whole: dict[str, Any], include_usage: bool) -> list[bytes]:
    usage = whole.pop("usage", None)
    choices = whole.pop("choices")
    head = {**whole, "object": "chat.completion.chunk"}
    if include_usage:
        head["usage"] = None
    chunks = [{**head, "choices": [piece]} for choice in choices for piece in _pieces(choice)]
    if include_usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return [event(orjson.dumps(chunk)) for chunk in chunks] + [event(DONE)]


def _pieces(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One choice as the choices of chunks: who speaks, what is said, why it ended."""
    message = choice.get("message") or {}
    logprobs = choice.get("logprobs")
    first: dict[str, Any] = {}
    deltas: list[dict[str, Any]] = []
    for name, value in message.items():
        if name == "tool_calls" and isinstance(value, list):
            deltas += _cut_calls(value)
        elif isinstance(value, str) and name not in _WHOLE_STRINGS:
            first[name] = ""
            # One piece where each token has its probability: they belong together.
            size = PIECE_CHARACTERS if logprobs is None else max(1, len(value))
            deltas += [{name: value[i : i + size]} for i in range(0, len(value), size)]
        else:
            first[name] = value
    base = {"index": choice.get("index", 0)}
    pieces = [{**base, "delta": delta} for delta in (first, *deltas)]
    if "logprobs" in choice:
        for piece in pieces:
            piece["logprobs"] = None
        pieces[-1]["logprobs"] = logprobs
    for piece in pieces:
        piece["finish_reason"] = None
    last = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    return [*pieces, {**last, **base, "delta": {}}]


def _cut_calls(calls: Sequence[Any]) -> list[dict[str, Any]]:
    """Calls of tools, each as its head and then its arguments."""
    deltas = []
    for index, call in enumerate(calls):
        head = {"index": index, **call}
        function = call.get("function")
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, str) and arguments:
            head["function"] = {**function, "arguments": ""}
        deltas.append({"tool_calls": [head]})
        if isinstance(arguments, str) and arguments:
            rest = {"index": index, "function": {"arguments": arguments}}
            deltas.append({"tool_calls": [rest]})
    return deltas
