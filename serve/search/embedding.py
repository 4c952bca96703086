"""Texts to vectors: what gives them (own_encoder.py, served_encoder.py), and what it is told.

Invariant: row i belongs to text i and has the length 1, or is zero where the model refused the
text, so that nothing finds it by meaning; all rows of one answer are of the model that gave the
vector of PROBE (space.py) with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from serve.ask.errors import AskError, TimedOut
from serve.embedder import BUNDLED, EmbeddingModelError
from serve.embedding.bundled import bundled_version
from serve.models.errors import ModelNotLoaded
from serve.search.vectors import Half, clipped

NOT_NOW = (AskError, EmbeddingModelError, TimeoutError, OSError)
"""What says that nobody gives vectors now."""


class Encoded(NamedTuple):
    """The vectors of some texts, and that of PROBE by the same model."""

    vectors: Half
    probe: Half


class Encoder(Protocol):
    """`model`: which one, by name."""

    model: str

    async def ready(self, seconds: float) -> None:
        """Return where the model can be asked now, or soon: one that is being loaded is waited for
        some seconds, and once, not by each who asks. Raises what `encode` does where it is not."""
        ...

    async def encode(self, texts: Sequence[str], seconds: float) -> Encoded:
        """The vectors of `texts`. Raises AskError, EmbeddingModelError or TimeoutError where
        nobody gives them within `seconds`."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def model_name(embedder: str) -> str:
    """What vectors by `embedder` are kept under (`bundled`, or a name or path)."""
    return bundled_version() if embedder == BUNDLED else embedder


def embeddable(text: str) -> str:
    """The part of a text that is embedded; never empty."""
    return clipped(text).strip() or "."


def reason_of(error: Exception) -> str:
    """What one of NOT_NOW means, as anybody may be told it."""
    if isinstance(error, ModelNotLoaded):
        return f"The embedding model cannot be asked now: {error.said}."
    if isinstance(error, EmbeddingModelError):
        return "The embedding model could not be loaded: the log of the search says why."
    if isinstance(error, TimeoutError | TimedOut):
        return "The embedding model did not answer in time: it is being loaded, or has much to do."
    return "The embedding model does not answer now."
