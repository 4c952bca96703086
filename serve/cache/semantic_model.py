"""The semantic cache as it is configured: which model, loaded when.

Invariant: a gateway whose configuration turns the semantic cache on has its model before it
answers, or does not start. Where only a header asks for it, the model is loaded at its first use.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from serve.ask.errors import Misconfigured
from serve.cache.semantic import ENTRY_BYTES, SemanticIndex
from serve.cache.thresholds import NotCalibrated, thresholds_of
from serve.embedder import BUNDLED, BUNDLED_NAME, Embedder, EmbeddingModelError, Vectors
from serve.gateway.settings import CacheSettings

INDEX_SHARE = 8
"""The index takes at most this part of what the answers may take."""

_log = logging.getLogger(__name__)


def semantic_index(settings: CacheSettings) -> SemanticIndex | None:
    """The index of a replica; None where its model is not calibrated and only a header could ask
    for it. Raises Misconfigured where the configuration does."""
    model = BUNDLED_NAME if settings.embedding == BUNDLED else settings.embedding
    try:
        thresholds = thresholds_of(model)
        embed = _Model(settings.embedding)
        if settings.semantic:
            embed.load()
    except (NotCalibrated, EmbeddingModelError) as error:
        if settings.semantic:
            raise Misconfigured(f"serve.cache.embedding: {error}") from error
        return None
    entries = max(1, settings.bytes // INDEX_SHARE // ENTRY_BYTES)
    return SemanticIndex(embed, thresholds, entries)


class _Model:
    """An embedding model that is loaded once, when it is first needed; if that fails, never."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._embedder: Embedder | None = None
        self._failed: EmbeddingModelError | None = None

    def load(self) -> Embedder:
        """The model. Raises EmbeddingModelError."""
        if self._failed is not None:
            raise self._failed
        if self._embedder is None:
            try:
                self._embedder = Embedder(self._name)
            except EmbeddingModelError as error:
                self._failed = error
                _log.warning("the semantic cache is off: %s", error)
                raise
        return self._embedder

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`. Raises EmbeddingModelError."""
        return self.load().encode(texts)
