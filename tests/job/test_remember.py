"""What a run learned is kept for the next one, or not; the run is complete either way."""

from __future__ import annotations

from typing import Any

import pytest
import ray
from ray.exceptions import GetTimeoutError, RayActorError

from job.naming.calls import NamingCalls
from job.progress import Progress, View
from job.ration.closing import keep_closing
from job.ration.deadline import Closing


class Handle:
    """A handle of the actor that holds the store; `error`: what asking it ends with."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.kept: dict[str, bytes] = {}
        self.learned = self.keep_learned = self

    def remote(self, name: str, value: bytes | None = None) -> bytes | Exception | None:
        if value is not None:
            self.kept[name] = value
        return self.error or self.kept.get(name)


def got(what: Any, timeout: float | None = None) -> Any:
    """What `ray.get` does with what a handle gives."""
    assert timeout is not None
    if isinstance(what, Exception):
        raise what
    return what


@pytest.mark.parametrize("error", [RayActorError(), GetTimeoutError("locked"), OSError("gone")])
def test_a_store_that_is_gone_ends_no_complete_run(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(ray, "get", got)
    settings: Any = None
    naming, view = NamingCalls(settings), View(asking=Progress(last=1.0))
    broken = Handle(error)
    keep_closing(broken, 100, view, naming)
    whole = Handle()
    keep_closing(whole, 100, view, naming)
    (value,) = whole.kept.values()
    assert Closing.decode(value).slowness
