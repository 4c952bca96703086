"""An answer as it is stored: who gave it, then its bytes as they came. Pure.

Invariant: `unpack` of what `pack` made gives the same back; neither looks into the answer.
"""

from __future__ import annotations

from serve.gateway.contract import Target


def pack(body: bytes, target: Target | None) -> bytes:
    """`body` as it is stored. `target`: who answered, None if not known."""
    who = b"" if target is None else str(target).encode()
    return len(who).to_bytes(2, "big") + who + body


def unpack(kept: bytes) -> tuple[bytes, Target | None]:
    """The body and who gave it."""
    start = 2 + int.from_bytes(kept[:2], "big")
    provider, _, model = kept[2:start].decode().partition("/")
    return kept[start:], Target(provider, model) if provider else None
