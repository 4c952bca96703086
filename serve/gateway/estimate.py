"""The input tokens of a request, guessed from its length. Pure.

Invariant: it costs microseconds whatever the length, since it runs on the loop that answers
everybody, and leaves out nothing that a model may read; what is reserved by it is settled with
what the provider counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from serve.cache.partition import FREE

ASCII_PER_TOKEN = 4
"""Characters: OpenAI's rule of thumb for English."""
MESSAGE_TOKENS = 4
"""Around each message (OpenAI's cookbook: 3, and the role)."""
IMAGE_TOKENS = 765
"""Of one picture of 1024 x 1024 in high detail, by OpenAI's table."""
SOUND_TOKENS = 500
"""Of a piece of sound."""


def text_tokens(text: str) -> int:
    """Tokens of a text: a quarter of its ASCII characters, and one for each two bytes beyond."""
    # In UTF-8 a Chinese character has two bytes more than an ASCII one, and costs about a token.
    beyond = (len(text.encode("utf-8", "surrogatepass")) - len(text)) // 2
    return -(-(len(text) - beyond) // ASCII_PER_TOKEN) + beyond


def chat_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of a checked chat: its messages, its tools, the schema of its answer, and whatever
    else it holds that may be read."""
    tokens = MESSAGE_TOKENS
    for message in body["messages"]:
        tokens += MESSAGE_TOKENS
        for name, value in message.items():
            if name == "content":
                tokens += _content_tokens(value)
            elif name != "role":
                tokens += _other_tokens(value)
    for name, value in body.items():
        if name not in FREE:
            tokens += _other_tokens(value)
    return tokens


def embedding_tokens(given: str | list[Any]) -> int:
    """Tokens of the checked input of a request for embeddings, all inputs together."""
    if isinstance(given, str):
        return text_tokens(given)
    if isinstance(given[0], int):
        return len(given)
    return sum(text_tokens(one) if isinstance(one, str) else len(one) for one in given)


def _content_tokens(content: object) -> int:
    if isinstance(content, list):
        return sum(map(_part_tokens, content))
    return _other_tokens(content)


def _part_tokens(part: object) -> int:
    if isinstance(part, dict):
        kind = part.get("type")
        if kind == "text" and isinstance(text := part.get("text"), str):
            return text_tokens(text)
        if kind in ("image_url", "input_image"):
            return IMAGE_TOKENS
        if kind == "input_audio":
            return SOUND_TOKENS
    return _other_tokens(part)


def _other_tokens(value: object) -> int:
    """Of what is sent on as it is, in whatever form the model sees it."""
    if isinstance(value, str):
        return text_tokens(value)
    if isinstance(value, dict | list):
        return len(orjson.dumps(value)) // ASCII_PER_TOKEN
    return 0
