"""Which answers are worth keeping: pure.

Invariant: what is not known to be whole and good is not.
"""

from __future__ import annotations

from typing import Any

import orjson

from serve.gateway.contract import Endpoint

GOOD_ENDS = ("stop", "tool_calls", "function_call")
"""Reasons to finish that say the model was done. Not `length` (cut), not `content_filter`."""


def is_good(endpoint: Endpoint, body: bytes) -> bool:
    """Whether `body` is a whole answer: no error, every choice finished by the model itself, with
    something said and nothing refused; vectors for embeddings."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(answer, dict) or answer.get("error"):
        return False
    if endpoint == "embeddings":
        return _full(answer.get("data"), _is_vector)
    return _full(answer.get("choices"), _is_choice)


def _full(items: Any, good: Any) -> bool:
    return isinstance(items, list) and bool(items) and all(map(good, items))


def _is_vector(item: Any) -> bool:
    return isinstance(item, dict) and bool(item.get("embedding"))


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict) or choice.get("finish_reason") not in GOOD_ENDS:
        return False
    message = choice.get("message")
    if not isinstance(message, dict) or message.get("refusal"):
        return False
    return bool(message.get("content") or message.get("tool_calls") or message.get("function_call"))
