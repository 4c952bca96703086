"""A generator that a run holds itself, in an actor.

Invariant: a model that broke never answers again: its process ends, and Ray starts another. A call
whose task is cancelled ends in the actor, too.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from serve.ask.errors import AskError, TimedOut, Unavailable
from serve.models.contract import ModelServer
from serve.models.load import load
from serve.models.settings import GeneratorSettings, ModelSettings

GRACE_SECONDS = 10.0
"""For which the actor is waited for beyond the seconds that its model is given."""

_log = logging.getLogger(__name__)


class GeneratorHost:
    """A generator inside an actor. An AskError is a value here: Ray would wrap it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        load: Callable[[ModelSettings], ModelServer] = load,
        end: Callable[[int], Any] = os._exit,
    ) -> None:
        """`end`: this process; Ray would not start another after an orderly end."""
        if not ray.get_gpu_ids():
            # Ray leaves all of a node's GPUs to be seen by who asked for none.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._server = load(GeneratorSettings.model_validate(settings))
        self._end = end

    def ready(self) -> None:
        """Returns once the model is loaded."""

    def numbers(self) -> Mapping[str, float]:
        """See `ModelServer.numbers`."""
        return self._server.numbers()

    async def answer(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes | AskError:
        """See `ModelServer.answer`."""
        try:
            return await self._server.answer(endpoint, body, seconds)
        except AskError as error:
            self._end_if_broken()
            return error

    def _end_if_broken(self) -> None:
        try:
            self._server.check_health()
        except Exception:
            _log.exception("the model broke; its process ends and is started again")
            self._end(1)


class ActorCalls:
    """`ModelAnswers` of a run's own actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelAnswers.answer`."""
        call = self._actor.answer.remote(endpoint, body, seconds)
        try:
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                answer: bytes | AskError = await call
        except asyncio.CancelledError:
            ray.cancel(call)
            raise
        except TimeoutError as error:
            ray.cancel(call)
            raise TimedOut(f"the model {model} gave nothing in {seconds:.0f} s", 504) from error
        except RayActorError as error:
            raise Unavailable(f"the process of the model {model} ended") from error
        except RayTaskError as error:
            raise Unavailable(f"the model {model} failed: {error.cause}", 500) from error
        except RayError as error:
            raise Unavailable(f"the model {model} cannot be asked: {error}", 500) from error
        if isinstance(answer, AskError):
            raise answer
        return answer
