"""A stream that is kept while it passes: its events go on as they come, and once it is whole, it is
put together and handed on.

Invariant: exactly one of `then`, `large` and `failed` is called, the first two before the client
sees `[DONE]`, so that whoever has seen it finds the answer kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self

import orjson

from serve.gateway.chunks import assemble
from serve.gateway.contract import Answered, Stream
from serve.gateway.events import DONE, event, payload_of

_LAST = event(DONE)


class Tee:
    """The events of `stream`. `then` gets the whole completion; `large` is called where it is too
    large to be put together, `failed` where there is none: an error came, or the stream was closed
    early."""

    def __init__(
        self,
        stream: Stream,
        most: int,
        then: Callable[[bytes], Awaitable[None]],
        large: Callable[[], Awaitable[None]],
        failed: Callable[[], Awaitable[None]],
    ) -> None:
        """`most`: bytes of events that are held until the end."""
        self._stream = stream
        self._most = most
        self._then = then
        self._large = large
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
            await self._tell(self._failed)
            raise
        if self._held <= self._most:
            self._events.append(passed)
            self._held += len(passed)
        if passed == _LAST:
            await self._tell(self._end())
        return passed

    async def aclose(self) -> None:
        """Close the stream; harmless to repeat."""
        try:
            await self._tell(self._failed)
        finally:
            await self._stream.aclose()

    def _end(self) -> Callable[[], Awaitable[None]]:
        if self._held > self._most:
            return self._large
        try:
            body = assemble([payload_of(each) for each in self._events])
        except ValueError:
            return self._failed
        return partial(self._then, with_usage(body, self._stream.about))

    async def _tell(self, end: Callable[[], Awaitable[None]]) -> None:
        if self._told:
            return
        self._told = True
        self._events.clear()
        await end()


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
