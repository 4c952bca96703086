"""What an embedding model is to whoever feeds it batches.

Invariant: `run` and `count` may be called from several threads at once; what they are given is
clean (`serve.embedder.clean`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One L2-normalised row a text."""

CHARACTERS_PER_TOKEN = 32
"""A text with more characters for each token that a model reads is over-long without being counted:
in no language does a token have so many, and to count 10 MB takes seconds."""


class EmbeddingModelError(Exception):
    """The embedding model cannot be loaded: says which one, why, and what to do."""


class DoesNotFit(Exception):
    """The texts of a batch do not fit in memory together."""


class Engine(Protocol):
    """A loaded model."""

    name: str
    """The model's full name."""
    dim: int
    """Of its vectors."""
    most_tokens: int
    """Of one text that is asked for online, special tokens included."""
    slots: int
    """Batches that it computes at once, each in a thread of its own."""
    padded: bool
    """Whether each text of a batch costs as much as the longest."""
    enough: int
    """Tokens of a batch from which on a larger one takes as long for each text."""
    most_batch: int
    """Tokens of a batch at most."""

    def enter(self) -> None:
        """Called once in each of the `slots` threads, before its first batch."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, special ones and the model's own prefix included."""
        ...

    def cut(self, text: str) -> str:
        """The beginning of `text` that the model may be given: itself where it is short enough, or
        where the model reads no further anyway."""
        ...

    def run(self, texts: Sequence[str]) -> Vectors:
        """The vectors of one batch. Raises DoesNotFit."""
        ...

    def memory(self) -> float:
        """The share of the device's memory that was in use at most in the last batch."""
        ...

    def close(self) -> None:
        """Let go of the model's memory: nothing may be asked after that."""
        ...
