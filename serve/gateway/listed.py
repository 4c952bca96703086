"""A whole answer, as a stream for who asked for one.

Invariant: its events are there before the first is asked for: none of them can fail any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from serve.gateway.chunks import cut
from serve.gateway.contract import Answered, Call, Stream
from serve.gateway.request import wants_usage


def streamed(completion: bytes, call: Call, about: Answered) -> Stream:
    """The whole `completion` as the stream that `call` asks for. Raises ValueError for what cannot
    be cut into events."""
    return Stream(_Listed(cut(completion, wants_usage(call.body))), about)


class _Listed:
    def __init__(self, events: Sequence[bytes]) -> None:
        self._events: Iterator[bytes] = iter(events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        for event in self._events:
            return event
        raise StopAsyncIteration
