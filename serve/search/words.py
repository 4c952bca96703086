"""Text to the words by which it is found, with where each one stands. Pure.

English words are stemmed (Snowball), so that "fails" finds "failed"; Chinese, Japanese and Korean
text has no spaces, and goes by its pairs of characters, and by each character alone for a query of
one. What programs write (`order-db-pool`, `OrderCreateException`) is found whole and by its parts.

Invariant: the words of a text depend on the text alone, and a query that is a part of a text cut at
words has only words of that text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import snowballstemmer

_PAIRED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_PIECE = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+(?:[-_.][^\W_{_PAIRED}]+)*")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\WA-Za-z\d_]+")
_APOSTROPHES = ("'", "\u2019")
LONGEST = 64
"""Characters of a word; what is longer is cut there (base64, a path)."""
_KNOWN = 1 << 16
"""Words whose stems and hashes are remembered."""


class Word(NamedTuple):
    """A word and the characters that it stands at."""

    word: str
    start: int
    end: int


def words_at(text: str) -> Iterator[Word]:
    """All words of `text`, those of parts beside those of the whole."""
    for found in _PIECE.finditer(text):
        piece, start = found.group(), found.start()
        if _is_paired(piece[0]):
            for at, character in enumerate(piece):
                yield Word(character, start + at, start + at + 1)
                if at + 1 < len(piece):
                    yield Word(piece[at : at + 2], start + at, start + at + 2)
            continue
        if len(piece) <= 2 and text[start - 1 : start] in _APOSTROPHES:
            continue  # the end of "can't" or "it's"
        parts = list(_PART.finditer(piece))
        if len(parts) > 1:
            yield Word(_plain(piece), start, found.end())
        for part in parts:
            first = start + part.start()
            yield Word(_stem(part.group()[:LONGEST]), first, start + part.end())
            humps = list(_HUMP.finditer(part.group()))
            if len(humps) > 1 and _has_humps(part.group()):
                for hump in humps:
                    yield Word(
                        _stem(hump.group()[:LONGEST]), first + hump.start(), first + hump.end()
                    )


def asked_words(query: str) -> list[str]:
    """The words that a query asks for, each once: of Chinese its pairs, since single characters are
    everywhere, and none of the English words that are, unless it has no others."""
    asked: dict[str, None] = {}
    for word, start, end in words_at(query):
        alone = end - start == 1 and _is_paired(word)
        if alone and (_paired_at(query, start - 1) or _paired_at(query, end)):
            continue
        asked[word] = None
    return [word for word in asked if word not in _STOPPED] or list(asked)


@lru_cache(maxsize=_KNOWN)
def hash_of(word: str) -> int:
    """64 bits that stand for a word, the same in every process."""
    data = word.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def _is_paired(character: str) -> bool:
    return _PAIRED_ONE.match(character) is not None


_PAIRED_ONE = re.compile(rf"[{_PAIRED}]")


def _paired_at(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _is_paired(text[at])


def _has_humps(word: str) -> bool:
    """Whether a program wrote it: `OrderCreate`, `SQLState`, and not `SO68030629`."""
    return any(a.islower() and b.isupper() for a, b in pairwise(word))


def _plain(word: str) -> str:
    return unicodedata.normalize("NFKC", word[:LONGEST]).casefold()


@lru_cache(maxsize=_KNOWN)
def _stem(word: str) -> str:
    plain = _plain(word)
    return str(_STEMMER.stemWord(plain)) if plain.isascii() and plain.isalpha() else plain


_STEMMER = snowballstemmer.stemmer("english")
_EVERYWHERE = (
    "a about above after again all am an and any are as at be because been before being below "
    "between both but by can could did do does doing don down during each few for from further "
    "had has have having he her here hers him his how i if in into is it its itself just me "
    "more most my no nor not now of off on once only or other our ours out over own same she "
    "should so some such than that the their theirs them then there these they this those "
    "through to too under until up very was we were what when where which while who whom why "
    "will with would you your"
)
_STOPPED = frozenset(_stem(word) for word in _EVERYWHERE.split())
