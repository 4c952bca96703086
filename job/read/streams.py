"""A file -> its bytes in order, decompressed.

Invariant: what a compressed file still held when it broke off is handed on before the damage is
told; one step never makes more than 32 MiB, whatever a compressed file claims to hold.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Literal

import zstandard

from job.storage.place import Place

Compression = Literal["none", "gzip", "zstd"]

CHUNK_BYTES = 1 << 20
_PAST_END_BYTES = 1 << 16
_FEED_BYTES = {"gzip": 1 << 14, "zstd": 1 << 10}
"""Compressed bytes fed at a time. Deflate grows at most 1,032 times; four bytes of zstd can stand
for a block of 128 KiB."""
_MAGIC: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


def compression_of(head: bytes) -> Compression:
    """By the first bytes, never by the name."""
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "none")


class ByteStream:
    """The bytes of a file from `start` on, in chunks, to be iterated once.

    Up to `end` (a byte offset; None: unknown) chunks are large, behind it small, as a reader only
    finishes a record there. `start` and `end` are of no meaning in a compressed file, which is
    read from its beginning. After the last chunk `damage` says what was wrong with a compressed
    file or that a plain one ended before `end`, or is None. Raises OSError where the file cannot
    be read.
    """

    def __init__(
        self, location: Place, compression: Compression, start: int = 0, end: int | None = None
    ) -> None:
        self._location = location
        self._compression = compression
        self._start = start
        self._end = end
        self.damage: str | None = None
        self.received = 0
        """Bytes handed out so far, decompressed."""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._plain() if self._compression == "none" else self._decompressed():
            self.received += len(chunk)
            yield chunk

    def _plain(self) -> Iterator[bytes]:
        with self._location.open() as file:
            position = self._start
            file.seek(position)
            while True:
                left = CHUNK_BYTES if self._end is None else self._end - position
                chunk = file.read(min(left, CHUNK_BYTES) if left > 0 else _PAST_END_BYTES)
                if not chunk:
                    if self._end is not None and position < self._end:
                        self.damage = (
                            f"the file ends at byte {position:,}; when it was looked at it had "
                            f"at least {self._end:,}"
                        )
                    return
                position += len(chunk)
                yield chunk

    def _decompressed(self) -> Iterator[bytes]:
        """Members of a file that was written in several parts follow one another; zeros between
        and after them are padding."""
        with self._location.open() as file:
            member, begun = self._new_member(), False
            for compressed in _pieces(file, _FEED_BYTES[self._compression]):
                while compressed := compressed if begun else compressed.lstrip(b"\0"):
                    before = member.copy() if self._compression == "gzip" else None
                    try:
                        data = member.decompress(compressed)
                    except (zlib.error, zstandard.ZstdError) as error:
                        self.damage = f"damaged {self._compression} data: {error}"
                        if before:
                            yield from _until_error(before, compressed)
                        return
                    if data:
                        yield data
                    begun = not member.eof
                    compressed = member.unused_data
                    if member.eof:
                        member = self._new_member()
            if begun:
                self.damage = f"the {self._compression} data ends in the middle"

    def _new_member(self) -> Any:
        if self._compression == "gzip":
            return zlib.decompressobj(wbits=31)
        return zstandard.ZstdDecompressor().decompressobj()


def _pieces(file: Any, size: int) -> Iterator[bytes]:
    """A file in pieces of `size`, read in large ones: on object storage each read is a request."""
    while chunk := file.read(CHUNK_BYTES):
        for start in range(0, len(chunk), size):
            yield chunk[start : start + size]


def _until_error(member: Any, compressed: bytes) -> Iterator[bytes]:
    """What can be read before the damaged place, byte by byte: a failing call of the library
    keeps back all it had made."""
    for index in range(len(compressed)):
        try:
            yield member.decompress(compressed[index : index + 1])
        except zlib.error:
            return
