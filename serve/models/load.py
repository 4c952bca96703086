"""Settings of a model -> its server, loaded in this process.

Invariant: only a process that serves a model imports what its kind needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from serve.models.contract import ModelServer
from serve.models.settings import BUNDLED, SMOLLM, EmbedderSettings, ModelSettings
from serve.models.weights import fault


class Loader(NamedTuple):
    """How models get into a process."""

    fault: Callable[[ModelSettings], str]
    """What is wrong with the files of a model, as far as that is seen without loading it; "" where
    nothing is."""
    load: Callable[[ModelSettings], ModelServer]
    """The server, which takes memory from then on. Raises an error that says what is wrong."""


def fault_of(settings: ModelSettings) -> str:
    """See `Loader.fault`."""
    if isinstance(settings, EmbedderSettings):
        return "" if settings.embedder == BUNDLED else fault(settings.embedder, modules=True)
    return "" if settings.generator == SMOLLM else fault(settings.generator, modules=False)


def load(settings: ModelSettings) -> ModelServer:
    """See `Loader.load`. Raises EmbeddingModelError and GenerationModelError."""
    if isinstance(settings, EmbedderSettings):
        from serve.embedding.server import EmbeddingServer

        return EmbeddingServer(settings)
    from serve.generation.server import GenerationServer

    return GenerationServer(settings)


LOADER = Loader(fault_of, load)
"""That of the models of `models`."""
