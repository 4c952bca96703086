"""From labelled pairs of questions to the thresholds of an embedding model, and how good they are.

Invariant: thresholds come from one half of the pairs, chosen by a hash of the pair; the other half
decides nothing. Pure: vectors in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import orjson

from serve.cache.agree import agrees
from serve.embedder import Vectors

PRECISION = 0.99
"""Of the hits on the calibration half, at least."""
KEPT = 0.95
"""Of its pairs that ask the same and agree, the share that the threshold keeps. What is less alike
than all those is no rewording that the pairs know."""
UNRELATED = 0.99
"""Of questions of different pairs, the share that the threshold is above."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions. `same`: one answer serves both; `why`: "paraphrase", or what differs
    (number, name, negation, direction, unit, time, other)."""

    a: str
    b: str
    same: bool
    why: str

    @property
    def held_out(self) -> bool:
        """Whether it decides no threshold."""
        return bool(blake2b(f"{self.a}\n{self.b}".encode(), digest_size=1).digest()[0] & 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """How a cache did on pairs: `hits` of them, `right` of those, `same` that it could have hit."""

    pairs: int
    same: int
    hits: int
    right: int

    @property
    def precision(self) -> float:
        """The share of hits that were right; 1 where there were none."""
        return self.right / self.hits if self.hits else 1.0

    @property
    def recall(self) -> float:
        """The share of pairs that ask the same that were hits."""
        return self.right / self.same if self.same else 0.0


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file of JSON lines."""
    return [Pair(**orjson.loads(line)) for line in path.read_bytes().splitlines() if line]


def measure(pairs: Sequence[Pair], hits: Sequence[bool]) -> Measured:
    """`hits[i]`: the answer to one question of `pairs[i]` was given to the other."""
    right = sum(hit and pair.same for pair, hit in zip(pairs, hits, strict=True))
    return Measured(len(pairs), sum(pair.same for pair in pairs), sum(hits), right)


def threshold(pairs: Sequence[Pair], a: Vectors, b: Vectors) -> float | None:
    """The least cosine of a hit, from the calibration half of `pairs` and the vectors of their
    questions (rows of length 1). None: the model does not tell rewordings of this language from
    other questions."""
    rows = [row for row, pair in enumerate(pairs) if not pair.held_out]
    left, right = a[rows], b[rows]
    cosines = left @ right.T
    unrelated = float(np.quantile(cosines[~np.eye(len(rows), dtype=bool)], UNRELATED))
    alike = [
        (float(cosines[at, at]), pairs[row].same)
        for at, row in enumerate(rows)
        if agrees(pairs[row].a, pairs[row].b)
    ]
    same = [cosine for cosine, is_same in alike if is_same]
    if not same:
        return None
    kept = float(np.quantile(same, 1 - KEPT))
    if kept < unrelated:
        return None
    return math.floor(1_000 * max(kept, _precise(alike))) / 1_000


def _precise(alike: Sequence[tuple[float, bool]]) -> float:
    """The least cosine from which on enough of `alike` ask the same."""
    ordered = sorted(alike, reverse=True)
    least, right = 1.0, 0
    for hits, (cosine, is_same) in enumerate(ordered, start=1):
        right += is_same
        if right >= PRECISION * hits:
            least = cosine
    return least
