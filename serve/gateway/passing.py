"""The payloads of a stream as they pass through: what they say of the answer is noted, and each is
sent on.

Invariant: each payload is sent on unchanged, except for the count of tokens that the client did not
ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serve.ask.wire import usage_of
from serve.gateway.chunks import chunk_of
from serve.gateway.contract import Answered
from serve.gateway.events import event
from serve.gateway.piece import is_plain, piece_of, says_something

_NO_USAGE: Final = b',"usage":null'


class Passing:
    """The payloads of one stream, in their order."""

    def __init__(
        self, about: Answered, wants_usage: bool, since: float, clock: Callable[[], float]
    ) -> None:
        """`about`: filled with what they say; `since`: when the request arrived, by the clock."""
        self._about = about
        self._wants_usage = wants_usage
        self._since = since
        self._clock = clock

    def event_of(self, payload: bytes) -> bytes | None:
        """The event that carries `payload` to the client; None where it gets none. Raises
        ValueError for a payload that is no piece of an answer."""
        about = self._about
        if about.first_token is None and says_something(chunk_of(payload) or {}):
            about.first_token = self._clock() - self._since
        if not is_plain(payload) and not self._understand(payload):
            return None
        if not self._wants_usage and _NO_USAGE in payload:
            # Inside a string its quotation marks would be escaped: this is the field itself.
            payload = payload.replace(_NO_USAGE, b"")
        return event(payload)

    def _understand(self, payload: bytes) -> bool:
        """Note what a payload says besides a piece of text; whether it is for the client."""
        piece = piece_of(payload)
        if piece is None:
            raise ValueError("no piece of a stream")
        usage = piece.get("usage")
        if isinstance(usage, dict) and (counted := usage_of(usage)).tokens_in:
            self._about.usage = counted
        choices = piece.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and isinstance(choice.get("finish_reason"), str):
                    self._about.finish_reason = choice["finish_reason"]
        return not (usage and not choices and not self._wants_usage)
