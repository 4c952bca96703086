"""A whole answer of a provider: is it one, what did it use, why did it end. Pure.

Invariant: an answer is passed on only if this found it to be one; a large one (vectors) is not
read as JSON, which would keep everybody waiting, but looked at where it counts tokens.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from serve.ask.contract import Usage
from serve.ask.wire import usage_of
from serve.gateway.contract import Endpoint

READ_BYTES: Final = 256 * 2**10
"""A longer answer to a request for embeddings is not read: reading takes a millisecond from about
here on."""
USAGE_BYTES: Final = 1024
"""A `usage` object is shorter."""


class Read(NamedTuple):
    """What was found out. `usage`: None where the provider did not count."""

    usage: Usage | None
    finish_reason: str | None


def read_whole(content: bytes, endpoint: Endpoint) -> Read | None:
    """What a whole answer says of itself; None where it is no answer."""
    if endpoint == "embeddings" and len(content) > READ_BYTES:
        return _looked_at(content)
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(data, dict):
        return None
    items = data.get("data" if endpoint == "embeddings" else "choices")
    if not isinstance(items, list) or not items or not isinstance(items[0], dict):
        return None
    reason = items[0].get("finish_reason")
    return Read(_counted(data.get("usage")), reason if isinstance(reason, str) else None)


def _looked_at(content: bytes) -> Read | None:
    stripped = content.strip()
    if not (stripped.startswith(b"{") and stripped.endswith(b"}") and b'"embedding"' in content):
        return None
    # Among vectors a field of this name is the answer's own, wherever it stands.
    at = content.rfind(b'"usage"')
    if at < 0:
        return Read(None, None)
    opening = content.find(b"{", at, at + USAGE_BYTES)
    for end in _closings(content, opening):
        try:
            return Read(_counted(orjson.loads(content[opening:end])), None)
        except orjson.JSONDecodeError:
            continue
    return Read(None, None)


def _closings(content: bytes, opening: int) -> list[int]:
    """Behind each brace that may close the one at `opening`."""
    if opening < 0:
        return []
    window = content[opening : opening + USAGE_BYTES]
    return [opening + i + 1 for i, byte in enumerate(window) if byte == ord("}")]


def _counted(usage: Any) -> Usage | None:
    found = usage_of(usage)
    return found if found.tokens_in else None
