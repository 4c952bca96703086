"""What an Embedder makes of any model: rows, batches, texts that have no vector."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest

from serve.embedder import (
    BATCH,
    WINDOW,
    Embedder,
    EmbeddingFailed,
    EmbeddingModelError,
    _batches,
)
from tests.serve.embedding_world import DIM, FakeEmbedder, FakeEngine, vector_of


def test_rows_are_in_the_order_of_the_texts_and_equal_texts_are_embedded_once() -> None:
    engine = FakeEngine()
    texts = ["a b c", "a", "b", "a b c", "a"]
    vectors = FakeEmbedder(engine).encode(texts)
    assert np.array_equal(vectors, np.stack([vector_of(text) for text in texts]))
    assert sorted(engine.batches) == [["a", "b", "a b c"]]


def test_no_texts() -> None:
    assert FakeEmbedder(FakeEngine()).encode([]).shape == (0, DIM)


def test_a_model_reads_clean_texts() -> None:
    engine = FakeEngine()
    FakeEmbedder(engine).encode(["", "a\0b", "\ud800"])
    assert sorted(engine.batches[0]) == [" ", "?", "a b"]


def test_a_text_that_has_no_vector_is_named() -> None:
    engine = FakeEngine()
    engine.broken = {"poison"}
    with pytest.raises(EmbeddingFailed, match="some poison"):
        FakeEmbedder(engine).encode(["a", "some poison", "b"])


def test_batches_hold_every_row_once_and_texts_of_like_length() -> None:
    texts = ["x" * (n * 37 % 101) for n in range(2 * WINDOW + 5)]
    batches = list(_batches(texts))
    assert sorted(row for rows in batches for row in rows) == list(range(len(texts)))
    assert max(map(len, batches)) <= BATCH
    spread = [max(map(len, some)) - min(map(len, some)) for some in _texts_of(batches, texts)]
    assert max(spread[:-1]) <= 20


def _texts_of(batches: Sequence[Sequence[int]], texts: Sequence[str]) -> list[list[str]]:
    return [[texts[row] for row in rows] for rows in batches]


def test_a_named_model_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("torch", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EmbeddingModelError, match="extra `models`"):
        Embedder("some-org/some-model")
