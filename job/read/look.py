"""A bounded look at a file: its compression, encoding and a sample of its text.

Invariant: at most 8 MiB of the beginning are read (1 MiB where that holds a line) and eight windows
of 64 KiB from further on, however large the file is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from job.read.encoding import UTF8, Encoding, detect
from job.read.streams import CHUNK_BYTES, ByteStream, Compression, compression_of
from job.storage.place import Place

_LONG_LINE_BYTES = 8 << 20
_WINDOWS = 8
_WINDOW_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Look:
    """What a file shows. `text`: its beginning in whole lines, where it has lines; `complete`: that
    is all of it; `elsewhere`: whole lines from further on; `damage`: what is wrong with its
    compressed data; `fingerprint`: of its size, beginning and end on disk."""

    compression: Compression = "none"
    encoding: Encoding = UTF8
    text: str = ""
    complete: bool = True
    elsewhere: tuple[str, ...] = ()
    damage: str | None = None
    fingerprint: str = ""


def look_at(location: Place, size: int) -> Look:
    """Looks at a file of `size` bytes. Raises OSError where it cannot be read."""
    with location.open() as file:
        first = file.read_at(_WINDOW_BYTES, 0) if size else b""
        last = file.read_at(_WINDOW_BYTES, max(size - _WINDOW_BYTES, 0)) if size else b""
        compression = compression_of(first)
        stream = ByteStream(location, compression)
        head, complete = _head(stream)
        windows = []
        if compression == "none" and not complete:
            step = (size - len(head)) // _WINDOWS
            starts = [len(head) + step * n for n in range(_WINDOWS - 1)]
            windows = [_whole_lines(file.read_at(_WINDOW_BYTES, start)) for start in starts]
            windows.append(_whole_lines(last))
    encoding = detect(head)
    if encoding == UTF8 and windows:
        encoding = detect(b"\n".join([head, *windows]))
    if not complete:
        head = _up_to_last_line(head, encoding)
    text, _ = encoding.decode(head[encoding.bom :])
    elsewhere = encoding.decode(b"\n".join(windows))[0] if encoding.unit == 1 else ""
    return Look(
        compression,
        encoding,
        text,
        complete,
        tuple(line for line in elsewhere.split("\n") if line.strip()),
        stream.damage,
        _fingerprint(size, first, last),
    )


def _head(stream: ByteStream) -> tuple[bytes, bool]:
    """The beginning of a file, and whether that is all of it."""
    head = bytearray()
    for chunk in stream:
        head += chunk
        if len(head) > _LONG_LINE_BYTES or (len(head) > CHUNK_BYTES and b"\n" in head):
            return bytes(head), False
    return bytes(head), True


def _up_to_last_line(head: bytes, encoding: Encoding) -> bytes:
    """The whole lines of a beginning; all of its whole characters where there is no line feed."""
    newline = encoding.newline
    end = head.rfind(newline) + len(newline)
    while end >= len(newline) and end % encoding.unit:
        end = head.rfind(newline, 0, end - 1) + len(newline)
    return head[:end] if end >= len(newline) else head[: len(head) - len(head) % encoding.unit]


def _whole_lines(window: bytes) -> bytes:
    return window[window.find(b"\n") + 1 : window.rfind(b"\n") + 1]


def _fingerprint(size: int, first: bytes, last: bytes) -> str:
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    digest.update(first)
    digest.update(last)
    return digest.hexdigest()
