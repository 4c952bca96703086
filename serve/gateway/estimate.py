"""The input tokens of a request, guessed from its length. Pure.

Invariant: it costs microseconds whatever the length, since it runs on the loop that answers
everybody; what is reserved by it is settled with what the provider counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

ASCII_PER_TOKEN = 4
"""Characters: OpenAI's rule of thumb for English."""
MESSAGE_TOKENS = 4
"""Around each message (OpenAI's cookbook: 3, and the role)."""
IMAGE_TOKENS = 765
"""Of one picture of 1024 x 1024 in high detail, by OpenAI's table."""
OTHER_TOKENS = 500
"""Of a part that is neither text nor a picture (sound, a file)."""


def text_tokens(text: str) -> int:
    """Tokens of a text: a quarter of its ASCII characters, and one for each two bytes beyond."""
    # In UTF-8 a Chinese character has two bytes more than an ASCII one, and costs about a token.
    beyond = (len(text.encode("utf-8", "surrogatepass")) - len(text)) // 2
    return -(-(len(text) - beyond) // ASCII_PER_TOKEN) + beyond


def chat_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of a checked chat: its messages, its tools and the schema of its answer."""
    tokens = MESSAGE_TOKENS
    for message in body["messages"]:
        tokens += MESSAGE_TOKENS + _content_tokens(message.get("content"))
        if calls := message.get("tool_calls"):
            tokens += _json_tokens(calls)
    for name in ("tools", "functions", "response_format"):
        if value := body.get(name):
            tokens += _json_tokens(value)
    return tokens


def embedding_tokens(given: str | list[Any]) -> int:
    """Tokens of the checked input of a request for embeddings, all inputs together."""
    if isinstance(given, str):
        return text_tokens(given)
    if isinstance(given[0], int):
        return len(given)
    return sum(text_tokens(one) if isinstance(one, str) else len(one) for one in given)


def _content_tokens(content: object) -> int:
    if isinstance(content, str):
        return text_tokens(content)
    if not isinstance(content, list):
        return 0
    return sum(_part_tokens(part) for part in content)


def _part_tokens(part: object) -> int:
    if isinstance(part, str):
        return text_tokens(part)
    if not isinstance(part, dict):
        return 0
    text = part.get("text") or part.get("refusal")
    if isinstance(text, str):
        return text_tokens(text)
    return IMAGE_TOKENS if part.get("type") in ("image_url", "input_image") else OTHER_TOKENS


def _json_tokens(value: object) -> int:
    return len(orjson.dumps(value)) // ASCII_PER_TOKEN
