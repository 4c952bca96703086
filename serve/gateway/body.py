"""A request's body while it comes: bounded in bytes and in its pace.

Invariant: of a body that is longer than allowed no more than that is held; one that stops coming
is not waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Mapping

from serve.gateway.errors import BadRequest, BodyTooLarge

PART_BYTES = 64 * 2**10
PART_SECONDS = 10.0
"""Each PART_BYTES of a body, and what is left of it, have so long to arrive: 52 kbit/s."""
LEAST_PACE = PART_BYTES / PART_SECONDS
"""Bytes a second."""
_DIGITS = 15
"""Of a Content-Length; more are no length of anything that there is."""


class GaveWay(Exception):
    """A body was read no further: others wanted its place."""


class Body:
    """One body on its way. `since`: the clock's seconds when its request arrived."""

    __slots__ = ("_since", "_size", "_timeout", "given_way")

    def __init__(self, since: float) -> None:
        self._since = since
        self._size = 0
        self._timeout: asyncio.Timeout | None = None
        self.given_way = False

    def behind(self, now: float) -> float:
        """Bytes that it lacks at LEAST_PACE."""
        return (now - self._since) * LEAST_PACE - self._size

    def give_way(self) -> None:
        """Read no further."""
        self.given_way = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def read(
        self,
        headers: Mapping[str, str],
        stream: AsyncIterable[bytes],
        limit: int,
        hold: Callable[[int], None],
    ) -> bytes:
        """The bytes of `stream`, at most `limit`: told by Content-Length, and counted as they
        come. `hold` is told of each part before it is kept, and may refuse it.

        Raises BodyTooLarge, BadRequest where it comes too slowly, GaveWay, what `hold` raises.
        """
        told = headers.get("content-length", "")
        if told.isdecimal() and (len(told) > _DIGITS or int(told) > limit):
            raise _too_large(limit)
        first, rest = b"", bytearray()
        due = PART_BYTES
        try:
            async with asyncio.timeout(PART_SECONDS) as self._timeout:
                async for part in stream:
                    self._size += len(part)
                    if self._size > limit:
                        raise _too_large(limit)
                    if self._size >= due and not self.given_way:
                        due = self._size + PART_BYTES
                        self._timeout.reschedule(asyncio.get_running_loop().time() + PART_SECONDS)
                    hold(len(part))
                    if first:
                        rest += part
                    else:
                        first = part
        except TimeoutError:
            if self.given_way:
                raise GaveWay from None
            raise BadRequest(
                f"the body came too slowly: send {PART_BYTES:,} bytes in {PART_SECONDS:.0f} s at "
                "least",
                code="body_timeout",
            ) from None
        finally:
            self._timeout = None
        return first + rest if rest else first


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body has more than {limit:,} bytes, the most this gateway takes; send less at once"
    )
