"""Which of the cluster's own models can be asked now, for whoever has somebody else to ask.

Invariant: each model is being waited for once at most, in the background, for whoever asks next;
one that is not there costs requests WAIT_SECONDS once, not each of them anew.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from serve.ask.errors import Unavailable
from serve.gateway.failures import DOWN_SECONDS
from serve.gateway.gate import PERMIT_SECONDS, PERMIT_SHARE
from serve.models.contract import ReadyCalls
from serve.models.errors import ModelLoading, ModelNotLoaded

KNOWN_SECONDS: Final = 10.0
"""For which a model that was ready is taken to be so."""
WAIT_SECONDS: Final = PERMIT_SECONDS
"""From when a model was first found not to be ready: for so long requests wait for it."""


@dataclass(frozen=True, slots=True)
class _Loading:
    began: float
    task: asyncio.Task[None]


class Readiness:
    """Of the models of one cluster. Belongs to one loop."""

    def __init__(
        self, calls: ReadyCalls, pooled: Collection[str], clock: Callable[[], float]
    ) -> None:
        """`pooled`: models that make room for others at any time, and are never known to be
        ready."""
        self._calls = calls
        self._pooled = pooled
        self._clock = clock
        self._ready: dict[str, float] = {}
        self._down: dict[str, float] = {}
        self._loading: dict[str, _Loading] = {}

    async def wait(self, model: str, deadline: float) -> None:
        """Wait for a model that is being loaded no longer than is of use. `deadline`: of the
        request, by the clock. Raises ModelNotLoaded, and the AskError that came instead."""
        now = self._clock()
        if now < self._ready.get(model, -math.inf):
            return
        if now < self._down.get(model, -math.inf):
            raise ModelNotLoaded(f"{model} was not there lately")
        loading = self._loading.get(model) or self._begin(model, now)
        seconds = min(loading.began + WAIT_SECONDS - now, PERMIT_SHARE * (deadline - now))
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await asyncio.shield(loading.task)
        except TimeoutError:
            raise ModelLoading(f"{model} is still being loaded") from None

    def lost(self, model: str) -> None:
        """It was not there after all."""
        self._ready.pop(model, None)

    async def aclose(self) -> None:
        """Wait for none any more."""
        tasks = [each.task for each in self._loading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, model: str, now: float) -> _Loading:
        task = asyncio.create_task(self._calls.ready(model))
        task.add_done_callback(lambda done: self._done(model, done))
        loading = self._loading[model] = _Loading(now, task)
        return loading

    def _done(self, model: str, task: asyncio.Task[None]) -> None:
        del self._loading[model]
        if task.cancelled():
            return
        error, now = task.exception(), self._clock()
        if error is not None:
            told = error.retry_after if isinstance(error, Unavailable) else None
            self._down[model] = now + min(DOWN_SECONDS, told or DOWN_SECONDS)
        elif model not in self._pooled:
            self._ready[model] = now + KNOWN_SECONDS
