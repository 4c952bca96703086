"""Which group a text belongs to by its words: cheap, for texts too many to be embedded.

Each text is a bag of its words and their character trigrams (of Chinese: pairs of characters),
weighted by how few texts have them and hashed into a fixed number of signed dimensions (Weinberger
et al. 2009). A group is the sum of its texts (Rocchio 1971), and how alike a text must be to it is
learned from the texts that were grouped by meaning, each looked at as if it had not been: of those
above the limit `SURE` are in the right group. Of a made day with 593 wordings of 12 causes, 200 of
them grouped, that finds groups for nine in ten of the others, 19 in 20 of these the right one; the
embedding model does so for 98 in 100, 98 in 100, at a hundredth of the speed.

Invariant: the place of a text depends on its words and on the lexicon alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SURE = 0.95
"""Of the texts whose groups are known, the share that the words must place right."""
FLOOR = 0.1
"""Least likeness (cosine) in any case: three times what texts without a common word have by chance
of their hashes."""

_DIMENSIONS = 512
"""Of a side: the likeness of texts without a common word is 0 with a deviation of 0.04."""
_BUCKETS = 1 << 16
"""Among which words are counted; the bits of a hash above these choose the dimension."""
_AT_ONCE = 512
"""Texts compared at once: with 4,000 groups, 8 MB."""
_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]+|[\u3400-\u9fff]+")
_KNOWN_WORDS = 1 << 14
"""Whose hashes are remembered: some 10 MB."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """How much each word tells. `rarity`: the weight of words by bucket."""

    rarity: Floats

    @classmethod
    def of(cls, texts: Sequence[str]) -> Lexicon:
        """The lexicon of `texts`."""
        rows, hashes, _ = _hashed(texts)
        found = np.unique(np.stack([rows, hashes % _BUCKETS]), axis=1)[1]
        frequency = np.bincount(found, minlength=_BUCKETS)
        return cls(np.log((1 + len(texts)) / (1 + frequency)).astype(np.float32))

    def place(self, texts: Sequence[str]) -> Floats:
        """Rows of length 1, of 0 for a text without words."""
        rows, hashes, weights = _hashed(texts)
        column = (hashes >> 16) % _DIMENSIONS
        signed = np.where(hashes >> 31, weights, -weights) * self.rarity[hashes % _BUCKETS]
        size = len(texts) * _DIMENSIONS
        flat = np.bincount(rows * _DIMENSIONS + column, weights=signed, minlength=size)
        return _unit(flat.reshape(len(texts), _DIMENSIONS).astype(np.float32))


Sides = Sequence[Sequence[str]]
"""What each text says, a sequence of texts for each side of it (event, cause)."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """Groups by their words: `places` has a row for each, and a text belongs to none to which it
    is less alike than `least`. `lexicons`: one for each side."""

    lexicons: list[Lexicon]
    places: Floats
    least: float

    @classmethod
    def of(cls, sides: Sides, groups: Sequence[int]) -> Profiles:
        """The profiles of the groups 0, 1, ... of which the texts are."""
        lexicons = [Lexicon.of(side) for side in sides]
        own = _place(lexicons, sides)
        group = np.array(groups)
        sums = np.zeros((group.max() + 1, own.shape[1]), dtype=np.float32)
        np.add.at(sums, group, own)
        places = _unit(sums)
        best, right = [], []
        for start in range(0, len(own), _AT_ONCE):
            some, theirs = own[start : start + _AT_ONCE], group[start : start + _AT_ONCE]
            rows = np.arange(len(some))
            likeness = some @ places.T
            # As if the text itself were not in its group.
            likeness[rows, theirs] = np.einsum("ij,ij->i", some, _unit(sums[theirs] - some))
            nearest = np.argmax(likeness, axis=1)
            best.append(likeness[rows, nearest])
            right.append(nearest == theirs)
        return cls(lexicons, places, _limit(np.concatenate(best), np.concatenate(right)))

    def nearest(self, sides: Sides) -> list[int | None]:
        """The group most like each text, None where none is alike enough."""
        found: list[int | None] = []
        for start in range(0, len(sides[0]), _AT_ONCE):
            some = [side[start : start + _AT_ONCE] for side in sides]
            likeness = _place(self.lexicons, some) @ self.places.T
            best = np.argmax(likeness, axis=1)
            alike = likeness[np.arange(len(best)), best] >= self.least
            found += [int(row) if near else None for row, near in zip(best, alike, strict=True)]
        return found


def _place(lexicons: Sequence[Lexicon], sides: Sides) -> Floats:
    """Rows whose dot products are the mean likeness of the sides."""
    placed = [lexicon.place(side) for lexicon, side in zip(lexicons, sides, strict=True)]
    return np.hstack(placed) / np.float32(np.sqrt(len(placed)))


def _limit(likeness: Floats, right: NDArray[np.bool_]) -> float:
    """The least likeness above which the share `SURE` is right; infinite if there is none."""
    order = np.argsort(-likeness, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    sure = np.flatnonzero(share >= SURE)
    return max(FLOOR, float(likeness[order[sure[-1]]])) if len(sure) else np.inf


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(lengths, np.float32(1e-9))
    return unit


def _hashed(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint32], Floats]:
    """For each different part of each text its row, its hash and its weight."""
    rows: list[int] = []
    hashes: list[int] = []
    weights: list[float] = []
    for row, text in enumerate(texts):
        parts: dict[int, float] = {}
        for word in _WORD.findall(text.lower()):
            parts.update(_of_word(word))
        rows += [row] * len(parts)
        hashes += parts.keys()
        weights += parts.values()
    return (
        np.array(rows, dtype=np.int64),
        np.array(hashes, dtype=np.uint32),
        np.array(weights, dtype=np.float32),
    )


@lru_cache(maxsize=_KNOWN_WORDS)
def _of_word(word: str) -> dict[int, float]:
    return {crc32(part.encode("utf-8", "surrogatepass")): weight for part, weight in _parts(word)}


def _parts(word: str) -> Iterator[tuple[str, float]]:
    """A word and its parts with their weights; the trigrams of a word weigh as much as it."""
    if "\u3400" <= word[0] <= "\u9fff":
        pairs = [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        yield from ((pair, 1.0) for pair in pairs)
    else:
        yield word, 1.0
        padded = f"^{word}$"
        weight = (len(padded) - 2) ** -0.5
        yield from ((padded[i : i + 3], weight) for i in range(len(padded) - 2))
