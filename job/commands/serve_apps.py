"""The applications of Ray Serve that `fupan serve` starts and ends.

Invariant: the gateway ends first, with all that it has begun, and only then what it asks; one that
is only on its way out, or failed to start, is not taken for one that runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from ray import serve as ray_serve
from ray.serve.schema import ApplicationStatus

from job.errors import JobError
from serve.models.deployed import can_answer

PAUSE = 0.2
"""Seconds between two looks whether an application has ended."""

Wait = Callable[[str, Callable[[], bool]], None]
"""`wait_until_gone`, for as long as is right here."""


class Own(Protocol):
    """Applications, those of them that were started here."""

    def delete(self) -> None:
        """Begin to end them. A request that they have not begun yet is turned away."""
        ...

    def gone(self) -> bool:
        """Whether they have ended."""
        ...


class OwnGateway:
    """The gateway."""

    def __init__(self, application: str) -> None:
        self._application = application

    def delete(self) -> None:
        """See `Own`."""
        ray_serve.delete(self._application, _blocking=False)

    def gone(self) -> bool:
        """See `Own`."""
        return _look(self._application) is None


def end(gateway: Own, asked: Sequence[Own], wait: Wait) -> None:
    """End the gateway, then those that it asks. Where its end is not waited for any more (Ctrl-C
    again, or JobError), neither is theirs."""
    with ExitStack() as then:
        for each in asked:
            then.callback(each.delete)
        gateway.delete()
        wait("the gateway", gateway.gone)
    wait("what the gateway asks", lambda: all(each.gone() for each in asked))


def wait_until_gone(
    what: str,
    gone: Callable[[], bool],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until `gone`, for as long as requests in flight may take. Ray's own `delete` waits a minute
    and gives up, whatever is in flight. Raises JobError after `seconds`."""
    until = clock() + seconds
    while not gone():
        if clock() >= until:
            raise JobError(f"{what} did not end within {seconds:g} s: it is ended as it is")
        sleep(PAUSE)


def _look(application: str) -> Any:
    return ray_serve.status().applications.get(application)


def runs(application: str, wait: Wait, look: Callable[[str], Any] = _look) -> bool:
    """Whether it is in this cluster, and is to be left as it is. One that is being deleted is
    waited for; one that failed to start, with no replica left from before, may be deployed anew."""
    found = look(application)
    if found is None:
        return False
    if found.status == ApplicationStatus.DELETING:
        wait(application, lambda: _over(look(application)))
        return runs(application, wait, look)
    return found.status != ApplicationStatus.DEPLOY_FAILED or can_answer(found)


def _over(found: Any) -> bool:
    return found is None or found.status != ApplicationStatus.DELETING
