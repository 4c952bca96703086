"""The same work on many parts: in parallel tasks where Ray runs, else in this process.

Invariant: results come in the order of the parts, and only a few are ever held here, however many
parts there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import ray

RETRIES = 3
"""Of a killed task; Ray's default is for ever."""

_Part = TypeVar("_Part")
_Done = TypeVar("_Done")


def spread(work: Callable[..., _Done], parts: Iterable[_Part], *more: Any) -> Iterator[_Done]:
    """`work(part, *more)` for each part. What is big in `more` goes through `held` first."""
    ahead = _ahead()
    waiting: deque[Any] = deque()
    for part in parts:
        waiting.append(begin(work, part, *more))
        if len(waiting) > ahead:
            yield done(waiting.popleft())
    while waiting:
        yield done(waiting.popleft())


def begin(work: Callable[..., Any], *args: Any, returns: int = 1) -> Any:
    """Begin `work(*args)`: what `done` takes, or so many of them where `work` returns a tuple.
    They can be arguments of further work, which gets the results."""
    if not ray.is_initialized():
        return work(*args)
    return _remote(work).options(num_returns=returns).remote(*args)


def done(begun: Any) -> Any:
    """The result, once it is there."""
    return ray.get(begun) if isinstance(begun, ray.ObjectRef) else begun


def held(value: Any) -> Any:
    """`value` as an argument for many parts: sent once."""
    return ray.put(value) if ray.is_initialized() else value


def _ahead() -> int:
    """Parts begun before the first is done: each CPU has the next one at hand."""
    return 2 * int(ray.cluster_resources().get("CPU", 1)) if ray.is_initialized() else 0


@lru_cache(maxsize=32)
def _remote(work: Callable[..., Any]) -> Any:
    """Made once a function: each making is sent to the cluster and kept there."""
    return ray.remote(num_cpus=1, max_retries=RETRIES)(work)
