"""A stream whose events carry several tokens each, for networks on which every packet costs.

Invariant: nothing is lost, and nothing is said twice or out of turn; closing it closes what it
reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import orjson

from serve.ask.tokens import count
from serve.gateway.chunks import chunk_of
from serve.gateway.contract import Stream
from serve.gateway.events import event, payload_of


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


class Joiner:
    """Joins the text of events in a row until `tokens` tokens have come, for networks on which
    every packet costs. Nothing else is joined, and nothing overtakes."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._held: dict[str, Any] | None = None
        self._events: list[bytes] = []
        self._texts: list[str] = []

    def feed(self, event_: bytes) -> list[bytes]:
        """The events to send now that `event_` has come; `[DONE]` sends all that was held back."""
        if self._tokens < 2:
            return [event_]
        chunk = chunk_of(payload_of(event_))
        text = _text_alone(chunk)
        if chunk is None or text is None:
            return [*self.flush(), event_]
        sent = []
        if self._held is not None and _index(self._held) != _index(chunk):
            sent = self.flush()
        if self._held is None:
            self._held = chunk
        self._events.append(event_)
        self._texts.append(text)
        if count("".join(self._texts)) >= self._tokens:
            sent += self.flush()
        return sent

    def flush(self) -> list[bytes]:
        """The event that was held back, if one was: for a stream that ends early."""
        held, events, texts = self._held, self._events, self._texts
        self._held, self._events, self._texts = None, [], []
        if held is None or len(events) == 1:
            return events
        held["choices"][0]["delta"]["content"] = "".join(texts)
        try:
            return [event(orjson.dumps(held))]
        except orjson.JSONEncodeError:  # nested deeper than what it writes
            return events


def _index(chunk: Mapping[str, Any]) -> object:
    return chunk["choices"][0].get("index")


def _text_alone(chunk: Mapping[str, Any] | None) -> str | None:
    """The text of a chunk that holds a piece of text and nothing besides."""
    if chunk is None or chunk.get("usage"):
        return None
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice = choices[0]
    delta = choice.get("delta")
    if not isinstance(delta, dict) or choice.get("finish_reason") or choice.get("logprobs"):
        return None
    text = delta.get("content")
    others = any(value for name, value in delta.items() if name != "content")
    return text if isinstance(text, str) and text and not others else None
