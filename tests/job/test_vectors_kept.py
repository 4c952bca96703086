"""What was embedded once is not embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from job.answers import vectors as vectors_kept
from job.answers.vectors import keeping
from job.themes.space import Vectors
from serve.ask.answers import Answers


class Model:
    """Unit vectors that depend on the text alone."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(rows), 8)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


TEXTS = [f"cause {n % 70}" for n in range(100)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_kept, "AT_ONCE", 16)


def test_the_next_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    first, again = Model(), Model()
    before = keeping(tmp_path / "a.db", "m 1", first)(TEXTS)
    assert np.array_equal(before, Model()(TEXTS))
    after = keeping(tmp_path / "a.db", "m 1", again)([*TEXTS, "new"])
    assert again.asked == ["new"]
    assert after.dtype == np.float32
    assert np.array_equal(after[:-1], before)


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    other = Model()
    keeping(tmp_path / "a.db", "m 1", Model())(TEXTS)
    keeping(tmp_path / "a.db", "m 2", other)(TEXTS)
    assert set(other.asked) == set(TEXTS)


def test_what_is_no_vector_is_embedded_anew(tmp_path: Path) -> None:
    path, model = tmp_path / "a.db", Model()
    keeping(path, "m", Model())(TEXTS)
    with Answers(path) as answers:
        answers.connection.execute('UPDATE answers SET value = \'{"vector": "AAAA"}\'')
    assert np.array_equal(keeping(path, "m", model)(TEXTS), Model()(TEXTS))
    assert set(model.asked) == set(TEXTS)


def test_a_store_that_cannot_be_opened_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no store of answers, but a text")
    assert np.array_equal(keeping(path, "m", Model())(TEXTS), Model()(TEXTS))
    assert len(keeping(path, "m", Model())([])) == 0
