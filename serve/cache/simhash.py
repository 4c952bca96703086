"""Fingerprints of questions: 64 bits, of which questions that say nearly the same words have most
in common (Charikar 2002). Pure.

Invariant: neither the order of words nor case, width, punctuation or words without a meaning of
their own (please, 一下) change a bit. Words are those of `serve.cache.agree`, so that Chinese is
cut into words here as it is there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from hashlib import blake2b

import numpy as np

from serve.cache.agree import Reading

BITS = 64
BANDS = 8
"""Bands of 8 bits each: two fingerprints that differ in fewer bits than there are bands have at
least one band in common."""

_BAND = BITS // BANDS


def fingerprint(words: Collection[str]) -> int:
    """The fingerprint of a set of words."""
    hashes = b"".join(blake2b(word.encode(), digest_size=BITS // 8).digest() for word in words)
    votes = np.unpackbits(np.frombuffer(hashes, dtype=np.uint8)).reshape(-1, BITS)
    return int.from_bytes(np.packbits(2 * votes.sum(axis=0) > len(words)).tobytes(), "big")


def words_of(read: Reading) -> set[str]:
    """What a question says, without how it says it."""
    return {*read.words, *read.numbers}


def bands(mark: int) -> list[int]:
    """The bands of a fingerprint, each with its place."""
    return [i << _BAND | (mark >> (i * _BAND) & ((1 << _BAND) - 1)) for i in range(BANDS)]


def distance(one: int, other: int) -> int:
    """In how many bits two fingerprints differ."""
    return (one ^ other).bit_count()


def likeness(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1: the share of their pairs of characters that both have
    (Dice), without case, width and punctuation."""
    ours, theirs = _pairs(one), _pairs(other)
    return 2 * len(ours & theirs) / ((len(ours) + len(theirs)) or 1)


def _pairs(text: str) -> set[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = " ".join("".join(c if c.isalnum() else " " for c in folded).split())
    return {plain[i : i + 2] for i in range(len(plain) - 1)} or {plain}
