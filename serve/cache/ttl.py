"""For how long an answer is kept: pure.

Invariant: between a quarter of the time of a short prompt, and all of it, each +-10 %.
"""

from __future__ import annotations

import math

SHORT = 256
"""Tokens of a prompt up to which its answer is kept for the whole time."""
LEAST = 0.25
"""The share of it that the answer to a long prompt is kept: from 4,096 tokens on."""
JITTER = 0.1


def time_to_live(ttl: float, tokens: int, key: bytes) -> float:
    """Seconds that an answer to a prompt of `tokens` is kept, `ttl` being that of a short one: with
    the root of its length, a quarter at 16 times the length. `key` decides the jitter, so that
    answers kept at one moment do not all leave at one moment, and every replica says the same."""
    share = max(LEAST, min(1.0, math.sqrt(SHORT / max(tokens, 1))))
    place = int.from_bytes(key[:4], "big") / 0xFFFFFFFF
    return ttl * share * (1 + JITTER * (2 * place - 1))
