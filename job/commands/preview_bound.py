"""What the time of a run depends on. Pure."""

from __future__ import annotations

from job.commands.preview_numbers import Taken
from serve.ask.buckets import PACE, capacity_for
from serve.ask.limiter import Limits

_MOSTLY = 0.6
"""Of the time with calls: a limit that takes so much of it is what it depends on."""


def bound_by(taken: Taken, limits: Limits) -> str:
    """In words: the limit that the calls wait for, or how many are in flight."""
    at_once = f"at most {limits.max_concurrency} calls in flight"
    if limits.rpm is None and limits.tpm is None:
        return f"no limit is known, {at_once}"
    least = {"requests": 0.0, "tokens": 0.0}
    if limits.rpm is not None:
        burst = (limits.burst or limits.rpm) * limits.share
        least["requests"] = least_minutes(taken.calls, limits.rpm * limits.share, burst)
    if limits.tpm is not None:
        rate = limits.tpm * limits.share
        tokens = taken.tokens_in.about + taken.tokens_out.about
        least["tokens"] = least_minutes(tokens, rate, rate)
    which = max(least, key=least.__getitem__)
    if 60 * least[which] >= _MOSTLY * taken.asking.about:
        return f"the limit of {which} a minute decides"
    return f"how long calls take decides, {at_once}"


def least_minutes(amount: float, per_minute: float, burst: float) -> float:
    """How long the limiter takes to let `amount` through: our share of the provider's bucket, used
    as `serve.ask.buckets` uses it."""
    at_once = capacity_for(per_minute / 60, burst)
    return max(0.0, amount - at_once) / (per_minute * PACE)
