"""A stream of events, and what is held for as long as it lasts.

Invariant: what is held is given back exactly once: at the end of the events, at an error among
them, or when the stream is closed, be it before its first event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Self

from serve.gateway.contract import Stream


class Held:
    """The events of `stream`; `give_back` is awaited when it is over."""

    def __init__(self, stream: Stream, give_back: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._give_back = give_back
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream.events)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the stream and give back what is held; harmless to repeat."""
        if self._over:
            return
        self._over = True
        try:
            await self._stream.aclose()
        finally:
            await self._give_back()
