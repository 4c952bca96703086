"""How long the asking still takes, from what the board shows. Pure.

Invariant: told from the limits that are known and from what calls are seen to take, so the first
burst of a limit, in which packs go out by the dozen, promises nothing of what follows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from job.progress import View


def seconds_left(view: View, slices: int) -> float | None:
    """About how long the records take that are to be asked, those of `slices` that nobody has read
    yet included; None while it cannot be told."""
    asking = view.asking
    each = view.facts.get("estimates", {}).get("seconds_a_call")
    if each is None or not asking.packs or not asking.packed_records:
        return None
    packs = math.ceil(_records_left(view, slices) / (asking.packed_records / asking.packs))
    if not packs:
        return None
    tokens = packs * (view.calls.tokens_in + view.calls.tokens_out) / max(view.calls.requests, 1)
    limiter = view.limiter
    in_flight = packs * each / max(limiter.get("concurrency", 1), 1)
    by_requests = _wait(packs, limiter, "rpm", "at_once")
    by_tokens = _wait(tokens, limiter, "tpm", "tokens_at_once")
    return float(max(in_flight, by_requests, by_tokens) + each)


def _wait(amount: float, limiter: Mapping[str, Any], rate: str, at_once: str) -> float:
    """Seconds until the limit of that name has let `amount` through; 0 where it is not known."""
    a_minute = limiter.get(rate)
    if not a_minute:
        return 0.0
    beyond: float = max(0.0, amount - (limiter.get(at_once) or 0.0))
    return beyond / (float(a_minute) / 60)


def _records_left(view: View, slices: int) -> float:
    """Records to be asked: those that wait, and as many of what was not read yet as of what was."""
    asking = view.asking
    waiting = asking.waiting_fast + asking.waiting_slow + asking.waiting_again
    if not 0 < view.slices < slices:
        return waiting
    unread = (view.records - view.folded) * (slices / view.slices - 1)
    ended = asking.answered + asking.review + asking.failed
    asked = (ended + waiting) / max(ended + waiting + asking.recalled, 1)
    return waiting + unread * asked
