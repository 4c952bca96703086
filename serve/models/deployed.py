"""Whether an application of this cluster can answer, as Ray Serve knows it; and an end to the wait
for those that cannot, since a handle of one that failed to start waits for ever.

Invariant: Ray Serve is asked at most once in LOOK_SECONDS, whoever wants to know; a call whose
first result is there within PATIENCE costs a timer and asks nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from ray import serve as ray_serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.schema import ApplicationStatus

from serve.models.errors import ModelNotLoaded

LOOK_SECONDS: Final = 1.0
"""For which what was seen is taken to be so."""
PATIENCE: Final = 1.0
"""Seconds without a first result after which it is looked why."""

Seen = Mapping[str, str]
"""What is wrong with each application, by name; empty where nothing is."""


def can_answer(found: Any) -> bool:
    """Whether an application that failed to start has replicas all the same: those from before an
    update. `found`: Ray Serve's ApplicationStatusOverview."""
    return any(each.replica_states.get("RUNNING", 0) for each in found.deployments.values())


async def look() -> Seen:
    """What Ray Serve's controller says. Raises ModelNotLoaded where it says nothing."""
    try:
        status = await asyncio.to_thread(ray_serve.status)
    except (RayError, RayServeException) as error:
        raise ModelNotLoaded(f"Ray Serve's controller cannot be reached: {error}") from error
    return {
        name: f"the application {name} failed to start"
        if found.status == ApplicationStatus.DEPLOY_FAILED and not can_answer(found)
        else ""
        for name, found in status.applications.items()
    }


class Deployed:
    """The applications of one cluster. Not for several threads; one loop at a time."""

    def __init__(self, look: Callable[[], Awaitable[Seen]] = look) -> None:
        self._look = look
        self._seen: Seen = {}
        self._until = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._waiting: dict[str, set[asyncio.Timeout]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def check(self, application: str) -> None:
        """Raises ModelNotLoaded where it cannot answer, and is not going to."""
        if why := await self._wrong(application):
            raise ModelNotLoaded(why)

    @asynccontextmanager
    async def first(self, application: str) -> AsyncIterator[None]:
        """For as long as the first result is waited for. Raises ModelNotLoaded where none comes."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                late = loop.call_later(PATIENCE, self._watch, application, limit)
                try:
                    yield
                finally:
                    late.cancel()
                    self._waiting.get(application, set()).discard(limit)
        except TimeoutError:
            if limit.expired():
                why = self._seen.get(application) or _gone(application)
                raise ModelNotLoaded(why) from None
            raise

    async def _wrong(self, application: str) -> str:
        if asyncio.get_running_loop().time() >= self._until:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._read())
            await asyncio.shield(self._looking)
        return self._seen.get(application, _gone(application))

    async def _read(self) -> None:
        self._seen = await self._look()
        self._until = asyncio.get_running_loop().time() + LOOK_SECONDS

    def _watch(self, application: str, limit: asyncio.Timeout) -> None:
        self._waiting.setdefault(application, set()).add(limit)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._keep_watch())

    async def _keep_watch(self) -> None:
        """Look again and again, while anybody waits."""
        while any(self._waiting.values()):
            for application in [name for name, limits in self._waiting.items() if limits]:
                try:
                    wrong = await self._wrong(application)
                except ModelNotLoaded:
                    break  # the controller comes back
                if wrong:
                    now = asyncio.get_running_loop().time()
                    for limit in self._waiting.pop(application):
                        limit.reschedule(now)
            await asyncio.sleep(LOOK_SECONDS)


def _gone(application: str) -> str:
    return f"there is no application {application} in this cluster"
