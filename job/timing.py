"""Where the time of a run goes: seconds by station.

Invariant: stations do not overlap, so their sum is at most the wall time; `overhead` is the wall
time less the time in which a call was in flight or waited for its permit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Stations:
    """A stopwatch per station, in the order in which they were first entered. `began`: seconds
    since the epoch."""

    began: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    current: str = "start"

    @contextmanager
    def station(self, name: str) -> Iterator[None]:
        """Count the block's time for `name`."""
        began = time.monotonic()
        self.current = name
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def timing(self, calls: float, waited_naming: float, **more: Any) -> dict[str, Any]:
        """timing.json. `calls`: seconds with an analysis call in flight or waiting for its permit;
        `waited_naming`: the same for naming calls."""
        wall = time.monotonic() - self.started
        return {
            "wall_s": round(wall, 3),
            "calls_s": round(calls, 3),
            "naming_calls_s": round(waited_naming, 3),
            "overhead_s": round(wall - calls - waited_naming, 3),
            "stations": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            **more,
        }
