"""Texts whose theme is known, for the tests of themes: a model that is simple to foresee, and the
wordings that the bundled one is tried on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import numpy as np

from job.themes.groups import ThemeGroup, ThemeText
from job.themes.space import Projection, ThemeSpace, Vectors
from serve.embedder import Embedder

DATA = Path(__file__).parent / "data"
SIZE = 256


class CausedWording(TypedDict):
    """One line of theme_wordings.jsonl: one of nine wordings of a cause. The space was learned from
    the causes of `half` "tune" among others; those of "test" were left out."""

    truth: str
    half: str
    lang: str
    event: str
    cause: str


def wordings(half: str) -> list[CausedWording]:
    """The wordings of one half of the causes."""
    lines = (DATA / "theme_wordings.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[CausedWording] = [json.loads(line) for line in lines]
    return [row for row in rows if row["half"] == half]


@lru_cache(maxsize=1)
def bundled() -> Embedder:
    """The bundled model, loaded once."""
    return Embedder()


def plain_space(size: int = SIZE) -> ThemeSpace:
    """A space that takes nothing out of the vectors."""
    nothing = Projection(np.zeros(size, dtype=np.float32), np.eye(size, dtype=np.float32))
    return ThemeSpace("foreseen", nothing, nothing, nothing, 0.4, 0.4)


def foreseen(texts: Sequence[str]) -> Vectors:
    """Vectors of texts like "refund late 3": those with the same first word are alike (cosine about
    0.6), others are not (about 0)."""
    rows = [_direction(t.split()[0]) + 0.8 * _direction(t) for t in texts]
    vectors = np.array(rows, dtype=np.float32).reshape(len(texts), SIZE)
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def _direction(word: str) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    direction = np.random.default_rng(seed).standard_normal(SIZE)
    unit: Vectors = direction / np.linalg.norm(direction)
    return unit


def text(event: str, positive: bool = False) -> ThemeText:
    """A text of which event and cause are the same."""
    return ThemeText(event, None, positive)


def pairwise_f1(truth: Sequence[str], groups: Sequence[ThemeGroup]) -> float:
    """F1 of "these two belong together" over all pairs of texts."""
    label = np.zeros(len(truth), dtype=int)
    for number, group in enumerate(groups):
        label[list(group.members)] = number
    _, cause = np.unique(truth, return_inverse=True)
    upper = np.triu_indices(len(truth), 1)
    together = (label[:, None] == label)[upper]
    same = (cause[:, None] == cause)[upper]
    return float(2 * (together & same).sum() / (together.sum() + same.sum()))
