"""The cluster's own deployment of an embedding model, asked by a run.

Invariant: a run loads no model and wakes none: only one that a replica has in memory is asked.
Vectors come as the float32 that the model gave; what it gave that is none is an AskError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayError
from ray.util import list_named_actors

from serve.ask.errors import ContextOverflow, RateLimited, Refused, TimedOut, Unavailable
from serve.embedding.answer import read_answer
from serve.models.contract import ModelAnswers
from serve.models.errors import ModelLost, ModelNotLoaded

TEXTS = 64
"""Of one request, so that several replicas have their share."""
AT_ONCE = 8
"""Requests: enough for several replicas, few beside the 256 that wait in one."""
SECONDS = 600.0
"""That a request may take: nobody sits in front of a run."""
PATIENCE_SECONDS = 300.0
"""Of pauses, after which a model that is busy, or lost its replica, is asked no more."""
PAUSE_SECONDS, MOST_PAUSE_SECONDS = 1.0, 30.0
"""The first pause and the longest; each is twice the one before, or as long as the model says."""
LOOK_SECONDS = 20.0
"""That a deployment has to say which models it has."""
_CONTROLLER = {"name": "SERVE_CONTROLLER_ACTOR", "namespace": "serve"}

Found = dict[str, NDArray[np.float32]]
"""Vectors by their texts."""


class DeployedEmbedder:
    """A model of a deployment of this cluster. Not for several threads."""

    def __init__(self, name: str, calls: ModelAnswers, loaded: Callable[[], bool]) -> None:
        """`name`: in the section `models`; `loaded`: whether a replica has it in memory now."""
        self._name = name
        self._calls = calls
        self._loaded = loaded

    def __str__(self) -> str:
        return f"the model {self._name} of this cluster"

    def vectors(self, texts: Sequence[str]) -> Found:
        """Of clean, distinct texts, those left out that the model refuses. Raises AskError where it
        gives none."""
        if not self._loaded():
            raise self._not_loaded()
        found: Found = {}
        for part in asyncio.run(self._ask_all(texts)):
            found |= part
        if len({len(vector) for vector in found.values()}) > 1:
            raise Unavailable(f"{self} gave vectors of different lengths", 500)
        return found

    async def _ask_all(self, texts: Sequence[str]) -> list[Found]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(part: Sequence[str]) -> Found:
            async with room:
                return await self._part(part)

        parts = [texts[start : start + TEXTS] for start in range(0, len(texts), TEXTS)]
        return await asyncio.gather(*map(one, parts))

    async def _part(self, texts: Sequence[str]) -> Found:
        """Where one is refused, all of its request are: the others are asked for again in halves,
        and what was computed is not computed again."""
        try:
            vectors = read_answer(await self._ask(texts), len(texts))
        except (Refused, ContextOverflow):
            if len(texts) == 1:
                return {}
            middle = len(texts) // 2
            return await self._part(texts[:middle]) | await self._part(texts[middle:])
        return dict(zip(texts, vectors, strict=True))

    async def _ask(self, texts: Sequence[str]) -> bytes:
        """The answer; what passes is waited for. Raises AskError."""
        body = {"model": self._name, "input": list(texts), "encoding_format": "base64"}
        last: Unavailable | RateLimited | None = None
        waited = 0.0
        for pause in _pauses():
            # The process that comes after one that was lost may not have this model.
            if not isinstance(last, ModelLost) or await asyncio.to_thread(self._loaded):
                try:
                    return await self._calls.answer(self._name, "embeddings", body, SECONDS)
                except (Unavailable, RateLimited) as error:
                    if not _passes(error) or waited >= PATIENCE_SECONDS:
                        raise
                    last = error
            elif waited >= PATIENCE_SECONDS:
                break
            pause = max(pause, last.retry_after or 0.0)
            await asyncio.sleep(pause)
            waited += pause
        raise last or self._not_loaded()

    def _not_loaded(self) -> ModelNotLoaded:
        return ModelNotLoaded(f"{self} is in no replica's memory")


def find_deployed(model: str) -> DeployedEmbedder | None:
    """What serves `model`, as it is named in settings, and has it in memory; None where nothing."""
    from serve.models.calls import APPLICATION, RayCalls

    prefix = APPLICATION.format("")
    for application in _applications():
        if not application.startswith(prefix):
            continue
        for name, embedder in _embedders(application).items():
            if embedder == model:
                calls = RayCalls({name: application.removeprefix(prefix)})
                return DeployedEmbedder(name, calls, _Loaded(application, name))
    return None


class _Loaded:
    """Whether a replica of an application has a model in memory."""

    def __init__(self, application: str, name: str) -> None:
        self._application = application
        self._name = name

    def __call__(self) -> bool:
        return self._application in _applications() and self._name in _embedders(self._application)


def _applications() -> list[str]:
    """Those of Ray Serve, in order, whose model has a replica."""
    if _CONTROLLER not in list_named_actors(all_namespaces=True):
        return []
    from ray import serve as ray_serve
    from ray.serve.exceptions import RayServeException

    from serve.models.calls import DEPLOYMENT

    try:
        found = ray_serve.status().applications
    except (RayError, RayServeException):
        return []
    return sorted(name for name, each in found.items() if _runs(each.deployments.get(DEPLOYMENT)))


def _runs(deployment: Any) -> bool:
    return deployment is not None and deployment.replica_states.get("RUNNING", 0) > 0


def _embedders(application: str) -> Mapping[str, str]:
    """The models of vectors that a replica has in memory; none where nobody says."""
    from ray import serve as ray_serve
    from ray.serve.exceptions import RayServeException

    from serve.models.calls import DEPLOYMENT

    try:
        handle = ray_serve.get_deployment_handle(DEPLOYMENT, application)
        found: Mapping[str, str] = handle.embedders.remote().result(timeout_s=LOOK_SECONDS)
    except (RayError, TimeoutError, RayServeException):
        return {}  # it will not do for a run
    return found


def _pauses() -> Iterator[float]:
    pause = PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, MOST_PAUSE_SECONDS)


def _passes(error: Unavailable | RateLimited) -> bool:
    """Whether the same request may be answered soon. What took all of its time would again."""
    return error.status != 500 and not isinstance(error, TimedOut | ModelNotLoaded)
