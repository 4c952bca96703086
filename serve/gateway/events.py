"""Server-sent events as bytes: told apart, and made. Pure.

A payload is what an event carries after `data:`; an event is that with its frame, as it is sent.
Invariant: however the bytes of a stream are cut on the wire, its payloads are the same; a payload
is one line.
"""

from __future__ import annotations

DONE = b"[DONE]"
"""The payload that ends a stream of chat completions."""
MOST_EVENT = 4 * 2**20
"""Bytes of one event: more than any answer of a model has."""
_BOM = b"\xef\xbb\xbf"


class EventReader:
    """Bytes as they come -> payloads as they are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._half = False
        """Whether a carriage return came last: half of a line's end, or all of it."""
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that are complete now. Raises ValueError where an event does not end."""
        if self._half or b"\r" in chunk:
            chunk = self._with_newlines(chunk)
        data = chunk
        if self._rest:
            seen = len(self._rest) - 1
            self._rest += chunk
            # Only in what is new: an event of n pieces would take n * n else.
            if self._rest.find(b"\n\n", seen) < 0:
                return self._waiting()
            data = bytes(self._rest)
        blocks = data.split(b"\n\n")
        self._rest = bytearray(blocks.pop())
        if not self._begun and blocks:
            self._begun = True
            blocks[0] = blocks[0].removeprefix(_BOM)
        payloads = [payload for block in blocks if (payload := _payload(block))]
        return payloads + self._waiting()

    def end(self) -> list[bytes]:
        """What the end of the bytes completes: `[DONE]`, which some send without an empty line
        after it. Another event without its end is cut off, and nothing."""
        rest = bytes(self._rest)
        return [DONE] if _payload(rest if self._begun else rest.removeprefix(_BOM)) == DONE else []

    def _with_newlines(self, chunk: bytes) -> bytes:
        if self._half:
            chunk = b"\r" + chunk
        self._half = chunk.endswith(b"\r")
        if self._half:
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _waiting(self) -> list[bytes]:
        """Nothing is complete of what is left."""
        if len(self._rest) > MOST_EVENT:
            raise ValueError(f"an event of more than {MOST_EVENT} bytes")
        return []


def _payload(block: bytes) -> bytes:
    """What an event's lines carry; empty for a comment or an event without data. Several lines of
    data make one: an end of a line is white space in JSON, and would end the line of `event`."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    values = [
        line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")
    ]
    return b" ".join(values)


def event(data: bytes) -> bytes:
    """The event that carries `data`, which is JSON on one line, or DONE."""
    return b"data: " + data + b"\n\n"


def payload_of(event_: bytes) -> bytes:
    """What a whole event, as `event` makes it, carries."""
    return event_[6:-2]
