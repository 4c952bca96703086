"""A stream of events, and what is held for as long as it lasts.

Invariant: what is held is given back exactly once: at the end of the events, at an error among
them, or when the stream is closed, be it before its first event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Self


class Held:
    """The events of a stream; `held` is closed with them."""

    def __init__(self, events: AsyncIterator[bytes], held: AsyncExitStack) -> None:
        self._events = events
        self._held = held

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._events)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Give back what is held; harmless to repeat."""
        await self._held.aclose()
