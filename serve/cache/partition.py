"""Which requests may share an answer: pure.

Invariant: two requests have the same partition only if nothing but the last thing the user said
may differ between them, and the same key only if not even that does. What does not decide an
answer (`FREE`) is left out; whatever is not known to be free decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from serve.gateway.contract import Call

VERSION = b"1"
"""Part of every key: raised when a kept answer must not be used any more."""
FREE = frozenset(
    (
        "model",
        "messages",
        "input",
        "stream",
        "stream_options",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "metadata",
        "store",
    )
)
"""Fields of a body that decide nothing, or that are hashed on their own (`model` by whom it stands
for). `safety_identifier` and `prompt_cache_key` are what OpenAI now has for `user`."""
LIMITS = ("max_tokens", "max_completion_tokens")
EXACT_INTEGER = 2**53
"""Below it, a float that is whole is the same number as the integer."""


class Place(NamedTuple):
    """Where the answer to a request is. `key`: 32 bytes over all that decides it; `partition`: 32
    bytes over all but `text`, the last thing the user said (None: only an equal request is like
    this one)."""

    key: bytes
    partition: bytes
    text: str | None


def place_of(call: Call) -> Place:
    """Where the answer to `call` is kept.

    Floats in parameters are made canonical; in messages and inputs they do not occur.
    """
    body = call.body
    shared = [
        VERSION,
        call.caller.tenant.encode("utf-8", "surrogatepass"),
        call.endpoint.encode(),
        (str(call.targets[0]) if call.targets else call.name).encode("utf-8", "surrogatepass"),
        _limit(call),
        canonical({name: value for name, value in body.items() if name not in FREE}),
    ]
    messages = body.get("messages")
    text = last_said(messages) if call.endpoint == "chat/completions" else None
    if text is None or messages is None:
        said = _dump(body.get("input") if call.endpoint == "embeddings" else messages)
        partition = digest(*shared, said)
        return Place(digest(b"all", partition), partition, None)
    last = messages[-1]
    about = {name: value for name, value in last.items() if name != "content"}
    partition = digest(*shared, _dump(messages[:-1]), _dump(about))
    return Place(digest(b"last", partition, text.encode()), partition, text)


def last_said(messages: Any) -> str | None:
    """What the user said last, where that is the last message and nothing but text; else None."""
    if not isinstance(messages, list) or not messages:
        return None
    last = messages[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return None
    content = last.get("content")
    return content if isinstance(content, str) else None


def canonical(value: Any) -> bytes:
    """JSON that is equal for equal values: keys sorted, and whole floats as integers (1.0 as 1,
    -0.0 as 0)."""
    data = _dump(value)
    # A whole float below 2**53 is written with `.0`; looking costs a hundredth of rebuilding.
    return _dump(_whole(value)) if b".0" in data else data


def _whole(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        if value.is_integer() and -EXACT_INTEGER < value < EXACT_INTEGER:
            return int(value)
    elif kind is dict:
        return {name: _whole(each) for name, each in value.items()}
    elif kind is list:
        return [_whole(each) for each in value]
    return value


def _limit(call: Call) -> bytes:
    """The output that a named task allows where the body sets no limit of its own."""
    if call.task is None or any(call.body.get(name) is not None for name in LIMITS):
        return b""
    return str(call.task.max_tokens).encode()


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(*parts: bytes) -> bytes:
    """32 bytes over `parts`, each with its length, so that no two lists of parts run together."""
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()
