"""Quotes: a span the model copied -> the exact span of the record's text it stands for. Pure.

Invariant: what `align_quote` returns is a substring of the text, or None.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from difflib import SequenceMatcher

SHARED_SHARE = 0.6
"""Of the quote's characters that must stand together in the text for the span to count as meant."""
SHARED_CHARACTERS = 4
"""Fewer in common say nothing."""
SEARCHED_CHARACTERS = 20_000
"""Of the text that the inexact search looks at: it takes time by text times quote."""


def align_quote(quote: str, text: str, numbers_vary: bool = False) -> str | None:
    """The exact span of `text` that `quote` stands for, or None.

    Exact first; then without regard to white space, case and width; then the longest run of
    characters the two share, if it is most of the quote. `numbers_vary`: nor to the values of
    numbers, where the quote is of another record that says the same of others.
    """
    if quote in text:
        return quote
    wanted = _Folded.of(quote, numbers_vary).characters
    if not wanted:
        return None
    folded = _Folded.of(text[:SEARCHED_CHARACTERS], numbers_vary)
    held = folded.characters
    start, size = held.find(wanted), len(wanted)
    if start < 0:
        matcher = SequenceMatcher(None, held, wanted, autojunk=False)
        match = matcher.find_longest_match()
        start, size = match.a, match.size
        if size < max(SHARED_CHARACTERS, SHARED_SHARE * len(wanted)):
            return None
    return text[folded.starts[start] : folded.ends[start + size - 1]].strip() or None


@dataclass(slots=True)
class _Folded:
    """A text without white space, in one case and width, where `numbers_vary` each number as one
    0; and where each character came from."""

    characters: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, numbers_vary: bool) -> _Folded:
        folded = cls()
        characters: list[str] = []
        for index, character in enumerate(text):
            for part in unicodedata.normalize("NFKC", character).casefold():
                if part.isspace():
                    continue
                if numbers_vary and part.isdigit():
                    part = "0"
                    if characters and characters[-1] == "0" and folded.ends[-1] == index:
                        folded.ends[-1] = index + 1
                        continue
                characters.append(part)
                folded.starts.append(index)
                folded.ends.append(index + 1)
        folded.characters = "".join(characters)
        return folded
