"""One payload of a stream: is it a piece of an answer, and if not, what is it. Pure.

Invariant: what is no piece is an error, whatever its form: nothing of it is passed on as if the
model had written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from serve.ask.errors import AskError
from serve.ask.wire import Wire
from serve.gateway.chunks import chunk_of

STREAM = "stream of a chat completion"
"""What is expected where a stream was asked for."""


def piece_of(payload: bytes) -> dict[str, Any] | None:
    """The JSON of a payload that is a piece of an answer, or its count of tokens; None where it is
    neither."""
    found = chunk_of(payload)
    if found is None or found.get("error"):
        return None
    known = isinstance(found.get("choices"), list) or isinstance(found.get("usage"), dict)
    return found if known else None


def says_something(piece: Mapping[str, Any]) -> bool:
    """Whether it holds something that the model wrote: many a stream begins with an empty piece."""
    choices = piece.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict) and any(delta[name] for name in delta if name != "role"):
            return True
    return False


def is_plain(payload: bytes) -> bool:
    """Whether it holds a piece of text and nothing to be noted: found without reading the JSON. A
    name in quotation marks is a field's, since inside a string they are escaped."""
    return (
        b'"finish_reason":null' in payload
        and b'"choices"' in payload
        and b'"error"' not in payload
        and (b'"usage"' not in payload or b'"usage":null' in payload)
        and payload.startswith(b"{")
        and payload.endswith(b"}")
    )


def problem(
    content: bytes, wire: Wire, headers: Mapping[str, str], body: Mapping[str, Any], expected: str
) -> AskError:
    """What it means that the answer to `body` holds `content` instead of what was `expected`: the
    provider's error, with its `headers`, in OpenAI's form or bare, or garbage."""
    found = chunk_of(content)
    if found is not None and "error" in found:
        return wire.refusal(200, headers, content, body)
    if found is not None and isinstance(found.get("message"), str):
        return wire.refusal(200, headers, orjson.dumps({"error": found}), body)
    return wire.garbage(content, expected)
