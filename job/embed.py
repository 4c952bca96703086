"""Texts to vectors: through the cluster's own deployment of the model where one runs, else an actor
of the embedder's class, or in this process.

Invariant: each distinct text is embedded once in a call; row i belongs to text i. The bundled
model's vectors are the same by all three ways, to the last bit on one kind of processor; those of
another differ by rounding, and more between a GPU (16-bit floats) and the CPU.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import ray

from job.answers.vectors import keeping
from job.deployed_embedder import DeployedEmbedder, Found, find_deployed
from job.themes.space import Encode, Vectors
from serve.ask.answers_at import AnswersAt
from serve.ask.errors import AskError
from serve.embedder import BUNDLED, BUNDLED_NAME, WINDOW, Embedder, clean
from serve.embedding.bundled import bundled_version

_log = logging.getLogger(__name__)
_RESTARTS = 2
"""Of the actor, and of a call on it; texts that kill it would kill it each time."""
AGAIN_SECONDS = 600
"""After which a deployment that failed is tried again."""


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

    return BUNDLED_NAME, keeping(kept, bundled_version(), encode)


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
    return name, ByDeployment(deployed, lambda: _open_actor(model)[1])


class ByDeployment:
    """An `Encode` by a deployment. What that refuses is another's work, and so is everything for a
    while after it failed."""

    def __init__(
        self,
        deployed: DeployedEmbedder,
        open_other: Callable[[], Encode],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_other`: called once, when it is first needed."""
        self._deployed = deployed
        self._open_other = open_other
        self._clock = clock
        self._not_before = -math.inf

    @cached_property
    def _other(self) -> Encode:
        return self._open_other()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """See `Encode`."""
        distinct = list(dict.fromkeys(map(clean, texts))) or [clean("")]
        found = self._asked(distinct)
        missing = [text for text in distinct if text not in found]
        if missing:
            others = self._other(missing)
            if found and others.shape[1] != len(next(iter(found.values()))):
                _log.warning("%s gives vectors of another length than its model", self._deployed)
                found, missing, others = {}, distinct, self._other(distinct)
            found |= dict(zip(missing, others, strict=True))
        rows = [found[clean(text)] for text in texts]
        length = len(found[distinct[0]])
        return np.array(rows, dtype=np.float32).reshape(len(rows), length)

    def _asked(self, texts: Sequence[str]) -> Found:
        """What the deployment gives."""
        if self._clock() < self._not_before:
            return {}
        try:
            return self._deployed.vectors(texts)
        except AskError as error:
            _log.warning(
                "%s is not asked for %d minutes, an actor is: %s",
                self._deployed,
                AGAIN_SECONDS // 60,
                error,
            )
            self._not_before = self._clock() + AGAIN_SECONDS
            return {}


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
