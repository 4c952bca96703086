"""Calls of the cluster's own models through Ray Serve, from a gateway's replica or a run.

Invariant: nothing but an AskError leaves here (cancellation apart); a call whose task is cancelled,
or whose chunks are not wanted any more, is cancelled in the replica too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ray import serve as ray_serve
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
    ReplicaUnavailableError,
)

from serve.ask.errors import AskError, Unavailable
from serve.models.deployed import Deployed
from serve.models.errors import BUSY_SECONDS, ModelBusy, ModelLost, ModelNotLoaded

APPLICATION = "fupan-model-{}"
"""The name of the application of an entry of `models`, in Ray Serve."""
DEPLOYMENT = "Model"
"""The name of its one deployment."""


class RayCalls:
    """`ReadyCalls` through the deployments of this cluster."""

    def __init__(self, applications: Mapping[str, str], deployed: Deployed | None = None) -> None:
        """`applications`: the entry whose application answers, by model; see `served`.
        `deployed`: those of this cluster."""
        self._entries = applications
        self._deployed = deployed or Deployed()
        self._handles: dict[str, Any] = {}
        self._fine: set[str] = set()

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelCalls.answer`."""
        handle = await self._handle(model)
        async with self._first(model):
            answer = await _result(handle.answer.remote(endpoint, body, seconds), model)
        return _given(answer)

    async def ready(self, model: str) -> None:
        """See `ReadyCalls.ready`."""
        handle = await self._handle(model)
        async with self._first(model):
            error = await _result(handle.ready.remote(), model)
        if error is not None:
            raise error

    async def stream(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelCalls.stream`."""
        handle = await self._handle(model)
        response = handle.options(stream=True).stream.remote(endpoint, body, seconds)
        chunks = aiter(response)
        try:
            async with self._first(model):
                chunk = await anext(chunks, None)
            while chunk is not None:
                yield _given(chunk)
                chunk = await anext(chunks, None)
        except (RayError, RayServeException) as error:
            raise _understood(error, model) from error
        finally:
            # Harmless where it has ended.
            response.cancel()

    @asynccontextmanager
    async def _first(self, model: str) -> AsyncIterator[None]:
        """See `Deployed.first`. Where it is not loaded the next call looks first."""
        application = self._application(model)
        try:
            async with self._deployed.first(application):
                yield
        except ModelNotLoaded:
            self._fine.discard(application)
            raise

    async def _handle(self, model: str) -> Any:
        """Of the model's deployment. Raises ModelNotLoaded."""
        application = self._application(model)
        if application not in self._fine:
            await self._deployed.check(application)
            self._fine.add(application)
        if model not in self._handles:
            # It asks Ray Serve's controller, and waits for it.
            handle: Any = await asyncio.to_thread(_handle_of, application)
            if self._entries[model] != model:
                # Of a pool: whoever has it loaded is to be asked.
                handle = handle.options(multiplexed_model_id=model)
            self._handles[model] = handle
        return self._handles[model]

    def _application(self, model: str) -> str:
        return APPLICATION.format(self._entries[model])


def _handle_of(application: str) -> Any:
    """Of the deployment of a model. Raises ModelNotLoaded."""
    try:
        return ray_serve.get_deployment_handle(DEPLOYMENT, application)
    except (RayError, RayServeException) as error:
        raise ModelNotLoaded(f"{application} cannot be reached: {error}") from error


async def _result(response: Any, model: str) -> Any:
    """What the replica gave. Raises an AskError where it gave nothing."""
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise
    except (RayError, RayServeException) as error:
        raise _understood(error, model) from error


def _given(value: bytes | AskError) -> bytes:
    """What the replica gave. It hands an error over as a value: Ray Serve writes one that is
    raised down with its traceback, whatever it is."""
    if isinstance(value, AskError):
        raise value
    return value


def _understood(error: Exception, model: str) -> AskError:
    """What it means that a call failed before its model could say why."""
    if isinstance(error, RayTaskError):
        return Unavailable(f"the model {model} failed: {error.cause}", status=500)
    if isinstance(error, RayActorError | ReplicaUnavailableError):
        return ModelLost(f"the process that answers for the model {model} ended")
    if isinstance(error, DeploymentUnavailableError):
        return ModelNotLoaded(f"the model {model} could not be loaded; `serve status` says why")
    if isinstance(error, BackPressureError):
        return ModelBusy(f"as many wait for the model {model} as may", 503, BUSY_SECONDS)
    return Unavailable(f"the model {model} cannot be asked: {error}", status=500)
