"""A kept answer given again: whole as it was kept, or cut into events for who wants a stream.

Invariant: it is free, and it says which cache had it.
"""

from __future__ import annotations

from decimal import Decimal

from serve.gateway.contract import Answer, Answered, CacheResult, Call, Target, Whole
from serve.gateway.listed import streamed


def replay(call: Call, body: bytes, target: Target | None, cache: CacheResult) -> Answer:
    """The answer to `call` out of `body`, a whole one that was kept; `target` gave it."""
    about = Answered(target=target, cost=Decimal(0), cache=cache)
    if not call.stream:
        return Whole(body, about)
    return streamed(body, call, about)
