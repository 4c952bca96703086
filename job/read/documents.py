"""Whether a text is a JSON document, and where in it the records are.

Invariant: a text of which only the beginning is known is judged like the whole of it: an array that
is still open where the known part ends counts as the longest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_WHITE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(strict=False)
_DEPTH = 2
"""Levels of objects in which the array of records is looked for."""
_MAX_TURNS = 200
_TURN_LISTS = {
    "messages", "turns", "dialogue", "dialog", "conversation", "conversations", "history",
    "utterances", "chat",
}  # fmt: skip
"""Keys whose array makes the object around it one conversation, unless its elements hold arrays
of objects themselves or there are more than _MAX_TURNS of them."""


def is_document(text: str, complete: bool) -> bool:
    """Whether a text begins as a JSON array or object does: its first element or key parses, or
    only the end of what is known of the text keeps it from doing so."""
    start = _skip(text, 0)
    opening = text[start : start + 1]
    if opening not in ("[", "{"):
        return False
    index = _skip(text, start + 1)
    if text[index : index + 1] == ("]" if opening == "[" else "}"):
        return not text[index + 1 :].strip()
    if opening == "{" and not text.startswith('"', index):
        return False
    try:
        _, end = _DECODER.raw_decode(text, index)
    except RecursionError:
        return True
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - 12
        # A broken first object is still one: a log line does not go on with `{"`.
        return (cut and not complete) or re.match(r'\{\s*"', text[index:]) is not None
    except ValueError:
        return True
    following = text[_skip(text, end) :][:1]
    return following in ((",", "]", "") if opening == "[" else (":", ""))


def array_path(text: str) -> tuple[str, ...]:
    """The keys to the longest array of objects in the first two levels of the object that a text
    begins with; () where it begins with an array, holds none, or is one conversation."""
    start = _skip(text, 0)
    if not text.startswith("{", start):
        return ()
    found = max(_arrays(text, start, _DEPTH), key=lambda item: item[0], default=None)
    return found[1] if found else ()


def _arrays(text: str, start: int, depth: int) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Length and path of the arrays of objects in the object that begins at `start`."""
    index = _skip(text, start + 1)
    while text.startswith('"', index):
        try:
            key, index = _DECODER.raw_decode(text, index)
        except ValueError:
            return
        index = begin = _skip(text, _skip(text, index) + 1)
        try:
            value, index = _DECODER.raw_decode(text, index)
        except (ValueError, RecursionError):
            # Open where the known text ends.
            if re.match(r"\[\s*\{", text[begin:]):
                yield float("inf"), (key,)
            elif text.startswith("{", begin) and depth > 1:
                yield from ((size, (key, *path)) for size, path in _arrays(text, begin, depth - 1))
            return
        if isinstance(value, list):
            objects = [item for item in value if isinstance(item, dict)]
            if objects and not _are_turns(key, objects):
                yield len(objects), (key,)
        elif isinstance(value, dict) and depth > 1:
            yield from ((size, (key, *path)) for size, path in _arrays(text, begin, depth - 1))
        index = _skip(text, index)
        if not text.startswith(",", index):
            return
        index = _skip(text, index + 1)


def _are_turns(key: str, objects: list[dict[str, Any]]) -> bool:
    return (
        key.lower() in _TURN_LISTS
        and len(objects) <= _MAX_TURNS
        and not any(
            isinstance(value, list) and any(isinstance(item, dict) for item in value)
            for item in objects
            for value in item.values()
        )
    )


def _skip(text: str, index: int) -> int:
    match = _WHITE.match(text, index)
    return match.end() if match else index
