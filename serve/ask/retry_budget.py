"""The retry budget: how much of the traffic may be second attempts.

Invariant: retries granted <= CAP + PER_SUCCESS * successes + seconds / SECONDS_PER_TOKEN, so that
retries cannot multiply the load of a provider that fails; a retry waits for its token, it never
fails for want of one.
"""

from __future__ import annotations

from serve.ask.buckets import TokenBucket

CAP = 10.0
PER_SUCCESS = 0.1
SECONDS_PER_TOKEN = 10.0


class RetryBudget:
    """A bucket that also fills with every success. Starts full. Times are seconds."""

    def __init__(self, now: float) -> None:
        self._bucket = TokenBucket(1 / SECONDS_PER_TOKEN, CAP, now)

    def ready_at(self, now: float) -> float:
        """The time from which a token may be taken, as far as is known: successes come sooner."""
        return self._bucket.ready_at(1.0, now)

    def take(self, now: float) -> None:
        """Take one token; only when it is ready."""
        self._bucket.take(1.0, now)

    def good(self, now: float) -> None:
        """A call went well."""
        self._bucket.put_back(PER_SUCCESS, now)
