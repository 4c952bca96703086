"""From the vectors of an issue's texts to a space where issues of one cause are near.

A multilingual model puts the language of a text first: two Chinese sentences on different subjects
are nearer than a sentence and its translation. A projection, learned by `calibrate.py`, takes that
out, so that one limit serves all pairs of languages. Events and causes of problems, and events of
praise, have one each.

Invariant: the place of an issue depends on its own texts and on the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
_Float = TypeVar("_Float", bound=np.floating[Any])
Encode = Callable[[Sequence[str]], Vectors]
"""Texts to L2-normalised rows, in their order (see `serve.embedder`)."""

BUNDLED_SPACE = Path(__file__).with_name("space.npz")


@dataclass(frozen=True, slots=True)
class Projection:
    """What is taken out of the vectors of one kind of text: `mean` (d), then `map` (d, d)."""

    mean: NDArray[np.float32]
    map: NDArray[np.float32]

    def __call__(self, vectors: Vectors) -> Vectors:
        centred: Vectors = vectors - self.mean
        return unit_rows(centred @ self.map)


@dataclass(frozen=True, slots=True)
class ThemeSpace:
    """What calibration found for one embedding model.

    `model` is the embedder's name: places of different models never compare. The priors are the
    similarity to expect within a group of which nothing is known (see `linkage.py`).
    """

    model: str
    event: Projection
    cause: Projection
    praise: Projection
    problem_prior: float
    praise_prior: float

    def place_problems(self, events: Vectors, causes: Vectors) -> Vectors:
        """Rows of length 1 whose dot products are the mean of two similarities, that of the events
        and that of the causes."""
        both = np.hstack([self.event(events), self.cause(causes)])
        return (both * np.float32(np.sqrt(0.5))).astype(np.float32)

    def place_praise(self, events: Vectors) -> Vectors:
        """Rows of length 1 for what was praised."""
        return self.praise(events)

    def prior(self, positive: bool) -> float:
        """The prior for praise or for problems."""
        return self.praise_prior if positive else self.problem_prior

    def save(self, path: Path) -> None:
        """Write the space to `path`, vectors and maps in 16 bits."""
        parts = (self.event, self.cause, self.praise)
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                model=np.array(self.model),
                means=np.stack([part.mean for part in parts]).astype(np.float16),
                maps=np.stack([part.map for part in parts]).astype(np.float16),
                priors=np.array([self.problem_prior, self.praise_prior]),
            )


@lru_cache(maxsize=1)
def bundled_space() -> ThemeSpace:
    """The space of the bundled model."""
    with np.load(BUNDLED_SPACE, allow_pickle=False) as stored:
        means, maps = (stored[name].astype(np.float32) for name in ("means", "maps"))
        event, cause, praise = (Projection(*pair) for pair in zip(means, maps, strict=True))
        problem_prior, praise_prior = (float(prior) for prior in stored["priors"])
        return ThemeSpace(str(stored["model"]), event, cause, praise, problem_prior, praise_prior)


def unit_rows(rows: NDArray[_Float]) -> NDArray[_Float]:
    """Rows of length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[_Float] = rows / np.maximum(lengths, 1e-12).astype(rows.dtype)
    return unit
