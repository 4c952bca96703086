"""Quotes: a span the model copied -> the exact span of the record's text it stands for. Pure.

Invariant: what `align_quote` returns is a substring of the text, or None.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from job.fold.template import template

SHARED_SHARE = 0.6
"""Of the quote's characters that must stand together in the text for the span to count as meant."""
SHARED_CHARACTERS = 4
"""Fewer in common say nothing."""
SHARED_WORDS = 2
"""That do not vary; with fewer a quote could be anywhere."""
VARYING_CHARACTERS = 300
"""Of one value that varies, at most."""
SEARCHED_PLACES = 50
"""Where a quote may begin."""
SEARCHED_CHARACTERS = 20_000
"""Of the text that the inexact search looks at: it takes time by text times quote."""

_VARYING = re.compile(r"<[a-z_*]{1,33}>")


def align_quote(quote: str, text: str, numbers_vary: bool = False) -> str | None:
    """The exact span of `text` that `quote` stands for, or None.

    Exact first; then without regard to white space, case and width; then the longest run of
    characters the two share, if it is most of the quote. `numbers_vary`: nor to the values of
    numbers, nor to users, hosts and whatever else `job.fold.template` sets aside, where the quote
    is of another record that says the same of others.
    """
    if quote in text:
        return quote
    wanted = _Folded.of(quote, numbers_vary).characters
    if not wanted:
        return None
    folded = _Folded.of(text[:SEARCHED_CHARACTERS], numbers_vary)
    held = folded.characters
    start, size = held.find(wanted), len(wanted)
    if start < 0 and numbers_vary and (span := _by_what_stays(quote, text)):
        return text[slice(*span)].strip() or None
    if start < 0:
        matcher = SequenceMatcher(None, held, wanted, autojunk=False)
        match = matcher.find_longest_match()
        start, size = match.a, match.size
        if size < max(SHARED_CHARACTERS, SHARED_SHARE * len(wanted)):
            return None
    return text[folded.starts[start] : folded.ends[start + size - 1]].strip() or None


def _by_what_stays(quote: str, text: str) -> tuple[int, int] | None:
    """Where the words of the quote that do not vary stand one after the other; with the word
    before and after, where the quote begins or ends with what varies."""
    pieces = _VARYING.split(template(quote))
    if len(pieces) == 1 or len("".join(pieces).split()) < SHARED_WORDS:
        return None
    text = text[:SEARCHED_CHARACTERS]
    begins_varying, ends_varying = not pieces[0], not pieces[-1]
    first, *others = filter(None, pieces)
    at = text.find(first)
    for _ in range(SEARCHED_PLACES):
        if at < 0:
            return None
        if (end := _after(at + len(first), others, text)) is not None:
            before = text[:at].split()[-1:] if begins_varying else []
            behind = text[end:].split(maxsplit=1)[:1] if ends_varying else []
            begin = text.rfind(before[0], 0, at) if before else at
            return begin, text.find(behind[0], end) + len(behind[0]) if behind else end
        at = text.find(first, at + 1)
    return None


def _after(at: int, pieces: Sequence[str], text: str) -> int | None:
    """Where the last of the pieces ends, each the first after the one before."""
    for piece in pieces:
        found = text.find(piece, at, at + VARYING_CHARACTERS + len(piece))
        if found < 0:
            return None
        at = found + len(piece)
    return at


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
