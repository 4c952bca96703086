"""A kept answer given again: whole as it was kept, or cut into events for who wants a stream.

Invariant: it is free, and it says which cache had it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Self

from serve.gateway.chunks import cut
from serve.gateway.contract import Answer, Answered, CacheResult, Call, Stream, Target, Whole
from serve.gateway.request import wants_usage


def replay(call: Call, body: bytes, target: Target | None, cache: CacheResult) -> Answer:
    """The answer to `call` out of `body`, a whole one that was kept; `target` gave it."""
    about = Answered(target=target, cost=Decimal(0), cache=cache)
    if not call.stream:
        return Whole(body, about)
    return Stream(_Listed(cut(body, wants_usage(call.body))), about)


class _Listed:
    def __init__(self, events: Sequence[bytes]) -> None:
        self._events: Iterator[bytes] = iter(events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        for event in self._events:
            return event
        raise StopAsyncIteration
