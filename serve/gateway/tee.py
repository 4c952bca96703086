"""A stream that is kept while it passes: its events go on as they come, and once it is whole, it is
put together and handed on.

Invariant: exactly one of `then` and `failed` is called, `then` before the client sees `[DONE]`, so
that whoever has seen it finds the answer kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Self

import orjson

from serve.gateway.chunks import assemble
from serve.gateway.contract import Answered, Stream
from serve.gateway.events import DONE, event, payload_of

_LAST = event(DONE)


class Tee:
    """The events of `stream`. `then` gets the whole completion; `failed` is called where there is
    none in the end: an error came, the stream was closed early, or it was too large."""

    def __init__(
        self,
        stream: Stream,
        most: int,
        then: Callable[[bytes], Awaitable[None]],
        failed: Callable[[], Awaitable[None]],
    ) -> None:
        """`most`: bytes of events that are held until the end."""
        self._stream = stream
        self._most = most
        self._then = then
        self._failed = failed
        self._events: list[bytes] = []
        self._held = 0
        self._told = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            passed = await anext(self._stream.events)
        except BaseException:
            await self._tell(None)
            raise
        if self._held <= self._most:
            self._events.append(passed)
            self._held += len(passed)
        if passed == _LAST:
            await self._tell(self._whole())
        return passed

    async def aclose(self) -> None:
        """Close the stream; harmless to repeat."""
        await self._tell(None)
        await self._stream.aclose()

    def _whole(self) -> bytes | None:
        if self._held > self._most:
            return None
        try:
            body = assemble([payload_of(each) for each in self._events])
        except ValueError:
            return None
        return with_usage(body, self._stream.about)

    async def _tell(self, body: bytes | None) -> None:
        if self._told:
            return
        self._told = True
        self._events.clear()
        await (self._failed() if body is None else self._then(body))


def with_usage(body: bytes, about: Answered) -> bytes:
    """The completion `body` with the usage that its client did not want to see in the stream: who
    is given it later may."""
    answer = orjson.loads(body)
    used = about.usage
    if used is None or answer.get("usage"):
        return body
    answer["usage"] = {
        "prompt_tokens": used.tokens_in,
        "completion_tokens": used.tokens_out,
        "total_tokens": used.tokens_in + used.tokens_out,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }
    return orjson.dumps(answer)
