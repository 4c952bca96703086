"""A stream whose events carry several tokens each, for networks on which every packet costs.

Invariant: nothing is lost, and nothing is said twice or out of turn; closing it closes what it
reads.
"""

from __future__ import annotations

from collections import deque
from typing import Self

from serve.gateway.contract import Stream
from serve.gateway.events import Joiner


class Joined:
    """The events of `stream`, joined by `tokens`."""

    def __init__(self, stream: Stream, tokens: int) -> None:
        self._stream = stream
        self._joiner = Joiner(tokens)
        self._ready: deque[bytes] = deque()
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready and not self._over:
            event = await anext(self._stream.events, None)
            self._over = event is None
            self._ready.extend(self._joiner.flush() if event is None else self._joiner.feed(event))
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
