"""An event loop whose clock jumps to the next timer instead of waiting for it.

Invariant: it jumps only where nothing has arrived. What is sent over a Unix socket has arrived when
it was sent, so whoever talks over one within a loop sees the same seconds on any machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _JumpingSelector(selectors.DefaultSelector):
    """Passes simulated seconds where the real selector would wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        arrived = super().select(0)
        if arrived:
            return arrived
        if timeout is None:
            raise RuntimeError("everybody waits and nothing will ever happen")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs a day of timers in no time."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(main: Coroutine[Any, Any, _T]) -> _T:
    """What `main` returns; time is simulated."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def virtually(test: Callable[_P, Coroutine[Any, Any, None]]) -> Callable[_P, None]:
    """A test whose seconds are simulated."""

    @wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run
