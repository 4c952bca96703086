"""How many requests and tokens the provider allows: as configured, as its headers tell, as its
refusals teach.

Invariant: the lowest of what is known holds. A configured limit is never exceeded, whatever the
provider says; what was learned only ever lowers it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from serve.ask.buckets import PACE, TokenBucket, capacity_for
from serve.ask.pace import FoundRate, Pause
from serve.ask.permit import Lease, Limits, Outcome
from serve.ask.ratelimit_headers import Quota, quota

MINUTE = 60.0
FOUND_BURST_SECONDS = 1.0
"""What the bucket of a found rate holds: a stall or an open breaker saves up no second storm."""
WHOLE_RESET = 0.9
"""A reset at least this part of the time our own bucket takes to fill is the provider's bucket
filling up, not a window that ends."""


class Allowance:
    """Buckets of requests and tokens, and the pause a refusal brings. Times are seconds.

    Calls are known by their number in the order of granting.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._told_rpm: float | None = None
        self._told_tpm: float | None = None
        self._pause = Pause()
        self._found = FoundRate()
        self._refused_at_call = 0
        self._requests: TokenBucket | None = None
        self._tokens: TokenBucket | None = None
        self._fit(now)

    @property
    def rpm(self) -> float | None:
        """Requests a minute granted at most now; None: no limit is known."""
        return None if self._requests is None else self._requests.rate * MINUTE

    @property
    def tpm(self) -> float | None:
        """Tokens a minute granted at most now; None: no limit is known."""
        return None if self._tokens is None else self._tokens.rate * MINUTE

    @property
    def rpm_found(self) -> float | None:
        """The same, where it was found out from refusals; None: it was not."""
        return None if self._found.rate is None else self._found.rate * MINUTE

    def at_once(self, now: float) -> float | None:
        """Requests that may be sent in a burst now; None: no limit is known."""
        return None if self._requests is None else max(0.0, self._requests.level(now))

    def tokens_at_once(self, now: float) -> float | None:
        """The same of tokens."""
        return None if self._tokens is None else max(0.0, self._tokens.level(now))

    @property
    def paused_until(self) -> float:
        """No grant before this time."""
        return self._pause.until

    def set_limits(self, limits: Limits, now: float) -> None:
        """Go on under other limits from the present levels."""
        self._limits = limits
        self._fit(now)

    def ready_at(self, tokens: int, now: float) -> float:
        """The time from which a request of `tokens` may be sent: `now` or later."""
        at = max(now, self._pause.until)
        if self._requests is not None:
            at = max(at, self._requests.ready_at(1, now))
        if self._tokens is not None:
            at = max(at, self._tokens.ready_at(tokens, now))
        return at

    def take(self, requests: int, tokens: int, now: float) -> None:
        """So much is sent, or was sent lately under a limiter that is gone."""
        if self._requests is not None:
            self._requests.take(requests, now)
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def busy_again(self, idle_since: float, now: float) -> None:
        """Somebody asks again, after nobody had waited or been in flight since `idle_since`."""
        self._found.busy_again(idle_since, now)

    def granted(self, tokens: int, now: float) -> None:
        """A request of about `tokens` is sent."""
        self.take(1, tokens, now)
        self._found.granted(now)

    def settle(self, call: int, lease: Lease, outcome: Outcome, last_call: int, now: float) -> None:
        """Call number `call` ended; `last_call` was granted last."""
        self._pay_back(lease, outcome, now)
        self._heed(outcome, now)
        if outcome.kind == "unsent":
            self._found.not_taken(call)
        elif outcome.kind == "ok" and call > self._refused_at_call:
            self._pause.good()
            self._found.good()
            if self._found.rate is not None:
                self._fit(now)
        elif outcome.kind == "rate_limited":
            self._refuse(call, lease.granted_at, last_call, outcome.retry_after, now)
        elif outcome.kind == "unavailable" and outcome.retry_after is not None:
            self._pause.told(outcome.retry_after, now)

    def _pay_back(self, lease: Lease, outcome: Outcome, now: float) -> None:
        """Return what was reserved and not used.

        The request itself only where nothing was sent: whether a failure counts as one is the
        provider's secret. The tokens of a refusal or a failure come back, but not those of a call
        that timed out: the provider took it on, and counted them.
        """
        if outcome.kind == "unsent" and self._requests is not None:
            self._requests.put_back(1, now)
        if self._tokens is not None:
            used = outcome.tokens
            if used is None:
                used = lease.tokens if outcome.kind in ("ok", "timed_out") else 0
            self._tokens.put_back(lease.tokens - used, now)

    def _refuse(
        self, call: int, granted_at: float, last_call: int, retry_after: float | None, now: float
    ) -> None:
        if retry_after is not None:
            self._pause.told(retry_after, now)
        if call > self._refused_at_call:
            if retry_after is None:
                self._pause.back_off(now)
            allowed = None if self._requests is None else self._requests.rate
            self._found.refused(call, granted_at, last_call, allowed)
            self._refused_at_call = last_call
            self._fit(now)
        else:
            self._found.not_taken(call)
        if self._requests is not None:
            self._requests.empty_until(self._pause.until, now)

    def _heed(self, outcome: Outcome, now: float) -> None:
        """Take the provider's own account where it is lower than ours."""
        if not outcome.headers:
            return
        requests, tokens = quota(outcome.headers, "requests"), quota(outcome.headers, "tokens")
        told = (requests.limit or self._told_rpm, tokens.limit or self._told_tpm)
        if told != (self._told_rpm, self._told_tpm):
            self._told_rpm, self._told_tpm = told
            self._fit(now)
        for bucket, said in ((self._requests, requests), (self._tokens, tokens)):
            self._heed_quota(bucket, said, now)

    def _heed_quota(self, bucket: TokenBucket | None, said: Quota, now: float) -> None:
        if said.remaining is None:
            return
        fills_in = math.inf
        if bucket is not None:
            # The number is rounded down, and a whole unit off would stall a bucket that is used up.
            bucket.lower_to(said.remaining + 1, now)
            fills_in = bucket.full_at(now) - now
        if said.remaining < 1 and said.reset is not None and said.reset < WHOLE_RESET * fills_in:
            self._pause.told(said.reset, now)

    def _fit(self, now: float) -> None:
        """Make the buckets fit what is known now."""
        limits = self._limits
        requests = tokens = None
        if rpm := limits.rpm or self._told_rpm:
            requests = _shape(rpm * limits.share, (limits.burst or rpm) * limits.share)
        if tpm := limits.tpm or self._told_tpm:
            tokens = _shape(tpm * limits.share, tpm * limits.share)
        if (found := self._found.rate) is not None:
            if requests is not None and found >= requests.rate:
                self._found.forget()
            else:
                capacity = max(1.0, found * FOUND_BURST_SECONDS)
                if requests is not None:
                    capacity = min(capacity, requests.capacity)
                requests = _Shape(found, capacity)
        self._requests = _fitted(self._requests, requests, now)
        self._tokens = _fitted(self._tokens, tokens, now)


class _Shape(NamedTuple):
    rate: float
    capacity: float


def _shape(per_minute: float, burst: float) -> _Shape:
    """Our bucket for the provider's of `burst` units that refills at `per_minute`."""
    rate = per_minute / MINUTE
    return _Shape(rate * PACE, capacity_for(rate, burst))


def _fitted(bucket: TokenBucket | None, shape: _Shape | None, now: float) -> TokenBucket | None:
    """`bucket` in that shape; a new one is full."""
    if shape is None:
        return None
    if bucket is None:
        return TokenBucket(shape.rate, shape.capacity, now)
    bucket.resize(shape.rate, shape.capacity, now)
    return bucket
