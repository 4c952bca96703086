"""Time, what depends on the length of a prompt, and limits per minute.

Invariant: a bucket never holds more than its burst, and what is taken for a request is settled
exactly once. Pure but for Clock; all times are simulated seconds.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from itertools import pairwise

from serve.simulated_protocol import ApiError
from serve.simulated_settings import Settings

_TOLERANCE = 1e-9
"""A bucket refilled in float steps may be this much short of a whole unit."""


class Clock:
    """Simulated seconds since the first call of `now`, `scale` of them to a real second."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._origin: float | None = None

    def now(self) -> float:
        """Seconds since the first call, which is second 0."""
        current = time.monotonic()
        if self._origin is None:
            self._origin = current
        return (current - self._origin) * self._scale

    def real(self, seconds: float) -> float:
        """Real seconds in `seconds` simulated ones."""
        return seconds / self._scale

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` simulated ones."""
        if seconds > 0:
            await asyncio.sleep(seconds / self._scale)


def interpolated(points: Sequence[tuple[float, float]], tokens: float) -> float:
    """What holds at `tokens` input tokens (seconds, a probability): linear between the points, flat
    before the first, and going on beyond the last as steeply as before it."""
    if tokens <= points[0][0] or len(points) == 1:
        return points[0][1]
    segments = list(pairwise(points))
    (x0, y0), (x1, y1) = next((s for s in segments if tokens <= s[1][0]), segments[-1])
    return y0 + (y1 - y0) * (tokens - x0) / (x1 - x0)


class Bucket:
    """A token bucket: `per_minute` units a minute, at most `burst` at once, full at the start."""

    def __init__(self, per_minute: float, burst: float) -> None:
        self.per_minute = per_minute
        self.burst = burst
        self._level = burst
        self._at = 0.0

    def level(self, now: float) -> float:
        """Units that may be taken at `now`."""
        self._level = min(self.burst, self._level + (now - self._at) * self.per_minute / 60)
        self._at = now
        return self._level

    def wait_for(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken; infinite where it never may."""
        if amount > self.burst:
            return math.inf
        missing = amount - self.level(now)
        return missing * 60 / self.per_minute if missing > _TOLERANCE else 0.0

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, or, where it is negative, give that much back."""
        self._level = min(self.burst, self.level(now) - amount)


def _duration(seconds: float) -> str:
    """A time as the x-ratelimit-reset headers write it: `20ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:.3g}s" if minutes else f"{rest:.3g}s"


class Limits:
    """The limits of one account: requests and tokens a minute.

    A request takes one from the first and, from the second, its prompt and the most it may
    answer; what it did not use is given back when it is settled.
    """

    def __init__(self, settings: Settings) -> None:
        self._requests = (
            Bucket(settings.rpm, settings.request_burst or settings.rpm) if settings.rpm else None
        )
        self._tokens = (
            Bucket(settings.tpm, settings.token_burst or settings.tpm) if settings.tpm else None
        )

    def admit(self, tokens: int, now: float) -> None:
        """Take what a request of `tokens` may use. Raises ApiError (429) and takes nothing where
        it is too much."""
        wanted = ((self._requests, 1, "requests"), (self._tokens, tokens, "tokens"))
        for bucket, amount, kind in wanted:
            wait = bucket.wait_for(amount, now) if bucket else 0.0
            if bucket is None or wait == 0:
                continue
            what = f"Limit {bucket.per_minute:g}, Requested {amount}"
            if math.isinf(wait):
                raise ApiError(
                    429,
                    f"Request too large on {kind} per minute: {what}. It can never be admitted.",
                    kind=kind,
                    code="rate_limit_exceeded",
                )
            raise ApiError(
                429,
                f"Rate limit reached on {kind} per minute: {what}.",
                kind=kind,
                code="rate_limit_exceeded",
                retry_after=wait,
            )
        for bucket, amount, _ in wanted:
            if bucket:
                bucket.take(amount, now)

    def give_back(self, tokens: int, now: float) -> None:
        """Return tokens that were taken and not used."""
        if self._tokens:
            self._tokens.take(-tokens, now)

    def headers(self, now: float, clock: Clock) -> dict[str, str]:
        """The x-ratelimit headers, their times in real seconds."""
        headers = {}
        for bucket, name in ((self._requests, "requests"), (self._tokens, "tokens")):
            if bucket:
                left = bucket.level(now)
                full = (bucket.burst - left) * 60 / bucket.per_minute
                headers[f"x-ratelimit-limit-{name}"] = f"{bucket.per_minute:.0f}"
                headers[f"x-ratelimit-remaining-{name}"] = str(max(0, math.floor(left)))
                headers[f"x-ratelimit-reset-{name}"] = _duration(clock.real(full))
        return headers
