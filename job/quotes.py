"""Quotes: a span the model copied -> the exact span of the record's text it stands for. Pure.

Invariant: what `align_quote` returns is a substring of the text, or None.
"""

from __future__ import annotations

import unicodedata
from difflib import SequenceMatcher

SHARED_SHARE = 0.6
"""Of the quote's characters that must stand together in the text for the span to count as meant."""
SHARED_CHARACTERS = 4
"""Fewer in common say nothing."""
SEARCHED_CHARACTERS = 20_000
"""Of the text that the inexact search looks at: it takes time by text times quote."""


def align_quote(quote: str, text: str) -> str | None:
    """The exact span of `text` that `quote` stands for, or None.

    Exact first; then without regard to white space, case and width; then the longest run of
    characters the two share, if it is most of the quote.
    """
    if quote in text:
        return quote
    folded_quote, _ = _folded(quote)
    if not folded_quote:
        return None
    folded_text, origin = _folded(text[:SEARCHED_CHARACTERS])
    start = folded_text.find(folded_quote)
    size = len(folded_quote)
    if start < 0:
        matcher = SequenceMatcher(None, folded_text, folded_quote, autojunk=False)
        match = matcher.find_longest_match()
        start, size = match.a, match.size
        if size < max(SHARED_CHARACTERS, SHARED_SHARE * len(folded_quote)):
            return None
    return text[origin[start] : origin[start + size - 1] + 1].strip() or None


def _folded(text: str) -> tuple[str, list[int]]:
    """`text` without white space, in one case and width, and where each character came from."""
    characters: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        for folded in unicodedata.normalize("NFKC", character).casefold():
            if not folded.isspace():
                characters.append(folded)
                origin.append(index)
    return "".join(characters), origin
