"""How many records the asking actor holds at once. Pure.

Invariant: what is held fills two packs for every call in flight (DESIGN 3), however far packs grow:
beyond the size to begin with they grow no further than what is held can fill (`cost.py`).
"""

from __future__ import annotations

import math

from serve.ask.settings import Provider

BLOCK_RECORDS = 256
"""Records in one call of the asking actor."""
LEAST_BLOCKS = 16
MOST_BLOCKS = 64
"""16,384 records: 95 MB of entries of 230 characters, 210 MB of records of 3,400 (measured). With
20 permits they fill packs of 409 records, 25,000 tokens of short ones."""
ROW_TOKENS = 60
"""Of a short record on the wire."""
ROWS_SHARE = 0.75
"""Of the context that records take at most; the rest are their answers."""
ORDINARY_ROWS = 40
"""In a pack of ordinary records of the size to begin with, about: room for these there is, however
many the permits."""


def blocks_at_once(provider: Provider, pack_tokens: int | None) -> int:
    """Calls of the asking actor at once: enough for the biggest packs of short records that the
    context holds, or that the user fixed (`pack_tokens`), as far as memory is worth it."""
    most = min(provider.context * ROWS_SHARE, pack_tokens or math.inf)
    wanted = min(_blocks(provider, most / ROW_TOKENS), MOST_BLOCKS)
    return max(LEAST_BLOCKS, wanted, _blocks(provider, ORDINARY_ROWS))


def records_held(provider: Provider) -> int:
    """Records that are held at once where packs find their size."""
    return blocks_at_once(provider, None) * BLOCK_RECORDS


def _blocks(provider: Provider, rows: float) -> int:
    """Blocks for packs of so many records, two for each permit."""
    return math.ceil(2 * provider.limits.max_concurrency * rows / BLOCK_RECORDS)
