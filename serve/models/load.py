"""Settings of a model -> its server, loaded in this process.

Invariant: only a process that serves a model imports what its kind needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from serve.models.contract import ModelServer
from serve.models.settings import EmbedderSettings, ModelSettings


def load(settings: ModelSettings) -> ModelServer:
    """The server. Raises EmbeddingModelError and GenerationModelError."""
    if isinstance(settings, EmbedderSettings):
        made = import_module("serve.embedding.server").EmbeddingServer(settings)
    else:
        made = import_module("serve.generation.server").GenerationServer(settings)
    return cast(ModelServer, made)
