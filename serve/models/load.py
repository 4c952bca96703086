"""Settings of a model -> its server, loaded in this process.

Invariant: only a process that serves a model imports what its kind needs.
"""

from __future__ import annotations

from serve.models.contract import ModelServer
from serve.models.settings import EmbedderSettings, ModelSettings


def load(settings: ModelSettings) -> ModelServer:
    """The server. Raises EmbeddingModelError and GenerationModelError."""
    if isinstance(settings, EmbedderSettings):
        from serve.embedding.server import EmbeddingServer

        return EmbeddingServer(settings)
    from serve.generation.server import GenerationServer

    return GenerationServer(settings)
