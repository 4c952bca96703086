"""The cluster's own deployment of an embedding model, asked by a run.

Invariant: a run starts no model and wakes none: only one that has a replica is asked. Vectors come
as the float32 that the model gave.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from ray.exceptions import RayError
from ray.util import list_named_actors

from job.themes.space import Vectors
from serve.ask.errors import Unavailable
from serve.embedder import clean
from serve.models.contract import ModelCalls

TEXTS = 64
"""Of one request, so that several replicas have their share."""
AT_ONCE = 8
"""Requests: enough for several replicas, few beside the 256 that wait in one."""
SECONDS = 600.0
"""That a request may take: nobody sits in front of a run."""
TRIES = 5
"""Of a request that found the queue full, or lost its replica."""
PAUSE_SECONDS = 2.0
"""Before the next try, where nobody said how long."""
LOOK_SECONDS = 20.0
"""That a deployment has to say which models it has."""
_CONTROLLER = {"name": "SERVE_CONTROLLER_ACTOR", "namespace": "serve"}


class DeployedEmbedder:
    """A model of a deployment of this cluster. Not for several threads."""

    def __init__(self, name: str, calls: ModelCalls) -> None:
        """`name`: in the section `models`."""
        self._name = name
        self._calls = calls

    def __str__(self) -> str:
        return f"the model {self._name} of this cluster"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.encode`. Raises AskError."""
        distinct = list(dict.fromkeys(map(clean, texts)))
        if not distinct:
            distinct, texts = [clean("")], []
        place = {text: row for row, text in enumerate(distinct)}
        vectors = np.concatenate(asyncio.run(self._ask_all(distinct)))
        found: Vectors = vectors[[place[clean(text)] for text in texts]]
        return found

    async def _ask_all(self, texts: Sequence[str]) -> list[Vectors]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(part: Sequence[str]) -> Vectors:
            async with room:
                return _vectors(await self._ask(part))

        parts = [texts[start : start + TEXTS] for start in range(0, len(texts), TEXTS)]
        return await asyncio.gather(*map(one, parts))

    async def _ask(self, texts: Sequence[str]) -> bytes:
        body = {"model": self._name, "input": list(texts), "encoding_format": "base64"}
        for _ in range(TRIES - 1):
            try:
                return await self._calls.answer(self._name, "embeddings", body, SECONDS)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after or PAUSE_SECONDS)
        return await self._calls.answer(self._name, "embeddings", body, SECONDS)


def find_deployed(model: str) -> DeployedEmbedder | None:
    """What serves `model`, as it is named in settings, and has a replica; None where nothing."""
    if _CONTROLLER not in list_named_actors(all_namespaces=True):
        return None
    from ray import serve as ray_serve
    from ray.serve.exceptions import RayServeException

    from serve.models.calls import APPLICATION, DEPLOYMENT, RayCalls

    prefix = APPLICATION.format("")
    for application, status in sorted(ray_serve.status().applications.items()):
        deployment = status.deployments.get(DEPLOYMENT)
        if not application.startswith(prefix) or not _runs(deployment):
            continue
        handle = ray_serve.get_deployment_handle(DEPLOYMENT, application)
        try:
            names = handle.embedders.remote().result(timeout_s=LOOK_SECONDS)
        except (RayError, TimeoutError, RayServeException):
            continue  # it will not do for a run
        for name, embedder in names.items():
            if embedder == model:
                calls = RayCalls({name: application.removeprefix(prefix)})
                return DeployedEmbedder(name, calls)
    return None


def _runs(deployment: Any) -> bool:
    return deployment is not None and deployment.replica_states.get("RUNNING", 0) > 0


def _vectors(answer: bytes) -> Vectors:
    coded = [base64.b64decode(item["embedding"]) for item in orjson.loads(answer)["data"]]
    return np.stack([np.frombuffer(each, dtype="<f4") for each in coded]).astype(np.float32)
