"""An answer as it is stored: who gave it, then its bytes as they came; and the seal that bytes have
which lie where others write too. Pure.

Invariant: `unpack` of what `pack` made gives the same back; neither looks into the answer. `unseal`
gives what was sealed under the same key, or nothing.
"""

from __future__ import annotations

from zlib import crc32

from serve.gateway.contract import Target

SEAL_VERSION = b"\x01"
"""Of what follows it: the writer, the checksum, and a value as this version packs it."""
WRITER_BYTES = 8
WRITER = slice(len(SEAL_VERSION), len(SEAL_VERSION) + WRITER_BYTES)
"""Where a sealed value says who wrote it."""
_SUM = slice(WRITER.stop, WRITER.stop + 4)


def pack(body: bytes, target: Target | None) -> bytes:
    """`body` as it is stored. `target`: who answered, None if not known."""
    who = b"" if target is None else str(target).encode()
    return len(who).to_bytes(2, "big") + who + body


def unpack(kept: bytes) -> tuple[bytes, Target | None]:
    """The body and who gave it."""
    start = 2 + int.from_bytes(kept[:2], "big")
    provider, _, model = kept[2:start].decode().partition("/")
    return kept[start:], Target(provider, model) if provider else None


def seal(key: bytes, value: bytes, writer: bytes) -> bytes:
    """`value` as it lies under `key`. `writer`: WRITER_BYTES of whoever writes it."""
    return SEAL_VERSION + writer + _sum_of(key, value) + value


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """The value; None for what was not sealed under `key` by this version, or is damaged. Against
    mistakes: whoever may write there can seal what they like."""
    value = sealed[_SUM.stop :]
    if sealed[: WRITER.start] != SEAL_VERSION or sealed[_SUM] != _sum_of(key, value):
        return None
    return value


def _sum_of(key: bytes, value: bytes) -> bytes:
    return crc32(value, crc32(key)).to_bytes(4, "big")
