"""A batch that fails is tried in halves, so that what is wrong with one text harms no other.

Invariant: every text has an outcome, in order; one fails only where it failed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serve.embedding.engine import DoesNotFit, Vectors


class Failed(NamedTuple):
    """Of one text: it has no vector. `fits`: False where it alone does not fit in memory."""

    reason: str
    fits: bool


Outcome = NDArray[np.float32] | Failed


class Halved(NamedTuple):
    """The outcome of each text, and whether all of them fitted at once."""

    outcomes: list[Outcome]
    fitted: bool


def in_halves(run: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Halved:
    """What `run` gives for `texts` (at least one)."""
    try:
        return Halved(list(run(texts)), True)
    except Exception as error:  # of a model: anything
        fits = not isinstance(error, DoesNotFit)
        if len(texts) == 1:
            return Halved([Failed(str(error) or type(error).__name__, fits)], fits)
    middle = len(texts) // 2
    first, second = in_halves(run, texts[:middle]), in_halves(run, texts[middle:])
    return Halved(first.outcomes + second.outcomes, fits and first.fitted and second.fitted)
