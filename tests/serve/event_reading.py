"""Server-sent events as a test reads them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from serve.gateway.events import EventReader


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The payloads in `chunks`. Raises ValueError where an event does not end."""
    reader = EventReader()
    async for chunk in chunks:
        for payload in reader.feed(chunk):
            yield payload
    for payload in reader.end():
        yield payload
