"""Texts to vectors, by the model that comes with the package or by one that is named.

Invariant: row i of the answer belongs to text i, and equal texts of one call have equal rows. With
the bundled model, which pads nothing, a text's vector depends on the text alone, to the last bit on
one kind of processor. With others it also depends on its neighbours, by rounding: MiniLM is held to
1e-5 a number on the CPU, 1e-2 in the 16-bit floats of a GPU (`tests/serve/test_embedder.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from serve.embedding.bundled import BUNDLED_NAME, BundledEngine
from serve.embedding.engine import EmbeddingModelError, Engine, Vectors
from serve.embedding.halves import Failed, Halved, in_halves
from serve.embedding.torch_model import TorchEngine

__all__ = ["BUNDLED", "BUNDLED_NAME", "Embedder", "EmbeddingModelError", "Vectors", "clean"]

BUNDLED = "bundled"
"""The name of the bundled model in settings."""
WINDOW = 512
"""Texts sorted by length at a time. Padded engines do as much work as the longest text of a batch
asks for: sorted within 512, 69.5 texts a second; within 32, 34.1."""
BATCH = 32
"""Texts an engine sees at once; bounds its memory (with the bundled model the process has
88 MB after short texts, 240 MB after some of 3,000 characters)."""


class EmbeddingFailed(Exception):
    """A text has no vector: says which one and why."""


class Embedder:
    """An embedding model in this process, with the threads that it computes in.

    `model` is "bundled", or a name or path that sentence-transformers understands. `name` is the
    model's full name, `dim` the length of its vectors. `threads`: on the CPU, those it may use;
    None: as many as there are processors. Raises EmbeddingModelError.
    """

    def __init__(self, model: str = BUNDLED, threads: int | None = None) -> None:
        self._use(BundledEngine(threads) if model == BUNDLED else TorchEngine(model, threads))

    def _use(self, engine: Engine) -> None:
        self.engine = engine
        self.name, self.dim = engine.name, engine.dim
        self.pool = ThreadPoolExecutor(
            engine.slots, thread_name_prefix="embedder", initializer=engine.enter
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One L2-normalised float32 row of `dim` numbers for each text, in the order given. Raises
        EmbeddingFailed."""
        distinct = list(dict.fromkeys(map(clean, texts)))
        place = {text: row for row, text in enumerate(distinct)}
        batches = list(_batches(distinct))
        vectors = np.empty((len(distinct), self.dim), dtype=np.float32)
        found = self.pool.map(self.run, [[distinct[row] for row in rows] for rows in batches])
        for rows, halved in zip(batches, found, strict=True):
            for row, outcome in zip(rows, halved.outcomes, strict=True):
                if isinstance(outcome, Failed):
                    raise EmbeddingFailed(
                        f"{self.name} has no vector for the text {distinct[row][:80]!r}: "
                        f"{outcome.reason}"
                    )
                vectors[row] = outcome
        return vectors[[place[clean(text)] for text in texts]]

    def run(self, texts: Sequence[str]) -> Halved:
        """The outcomes of one batch of clean texts, in this thread: one of `pool`."""
        return in_halves(self._finite, texts)

    def _finite(self, texts: Sequence[str]) -> Vectors:
        vectors = self.engine.run(texts)
        if not np.isfinite(vectors).all():
            # Some models' numbers become too large for 16-bit floats.
            raise FloatingPointError("the vector is not of numbers")
        return vectors


def clean(text: str) -> str:
    """`text` as a model reads it: valid UTF-8 without NUL, at which the C library would stop, and
    not empty."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ") or " "


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Rows of `texts` in batches of like length."""
    for start in range(0, len(texts), WINDOW):
        rows = range(start, min(start + WINDOW, len(texts)))
        ordered = sorted(rows, key=lambda row: len(texts[row]))
        for first in range(0, len(ordered), BATCH):
            yield ordered[first : first + BATCH]
