"""The chunks of a streamed chat completion: put together to a whole one, cut out of one. Pure.

Invariant: what is put together from the events that a completion was cut into is that completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from serve.gateway.events import DONE, event

PIECE_CHARACTERS = 24
"""Of the text in one event of a completion that is cut: about a line of reading a second at the
pace at which models write."""


def chunk_of(payload: bytes) -> dict[str, Any] | None:
    """The JSON object that a payload is; None where it is none."""
    try:
        chunk = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return chunk if isinstance(chunk, dict) else None


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
        chunk = chunk_of(payload)
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
    whole = chunk_of(completion)
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
