"""The breaker: when a provider fails, stop asking, then try with one call.

    closed --5 failures in a row, half of the last 20, or 10 answers 429 in a row--> open
    open --its time has passed (5 s, doubling to 60)--> half-open: one call at a time is a probe
    half-open --probe good--> closed        half-open --probe bad, or 429--> open, for twice as long

Invariant: only calls granted after the last opening move it, whenever they end: what was in flight
when the provider failed can neither close it nor open it again.
"""

from __future__ import annotations

import math
from collections import deque

from serve.ask.permit import BreakerState, OutcomeKind

IN_A_ROW = 5
WINDOW = 20
WINDOW_MIN = 10
RATE_LIMITED_IN_A_ROW = 10
OPEN_SECONDS = 5.0
OPEN_SECONDS_MAX = 60.0
PROBE_SECONDS = 10.0
"""A probe without an answer for so long is joined by another: one call that hangs for its whole
timeout must not prolong an outage that is over."""


class Breaker:
    """Calls are known by their number in the order of granting. Times are seconds."""

    def __init__(self) -> None:
        self._open = False
        self._opened_at_call = 0
        self._admits_at = -math.inf
        self._probing = False
        self._next_open = OPEN_SECONDS
        self._forget()

    def _forget(self) -> None:
        self._failures_in_a_row = 0
        self._rate_limited_in_a_row = 0
        self._recent: deque[bool] = deque(maxlen=WINDOW)

    def state(self, now: float) -> BreakerState:
        """Open until its time has passed, then half-open until a probe has answered."""
        if not self._open:
            return "closed"
        return "half_open" if self._probing or now >= self._admits_at else "open"

    def admits_at(self, now: float) -> float:
        """The time from which a call may be granted: `now`, or later while it is open."""
        return max(now, self._admits_at) if self._open else now

    def granted(self, now: float) -> None:
        """A call is granted; in half-open it is the probe."""
        if self._open:
            self._probing = True
            self._admits_at = now + PROBE_SECONDS

    def lived_through_opening(self, call: int) -> bool:
        """Whether the breaker opened after call number `call` was granted."""
        return call <= self._opened_at_call

    def record(self, call: int, kind: OutcomeKind, last_call: int, now: float) -> None:
        """Call number `call` ended; `last_call` was granted last."""
        if self.lived_through_opening(call):
            return
        if self._open:
            self._record_probe(kind, last_call, now)
        elif kind == "ok":
            self._failures_in_a_row = self._rate_limited_in_a_row = 0
            self._recent.append(True)
        elif kind == "rate_limited":
            self._rate_limited_in_a_row += 1
        elif kind in ("unavailable", "timed_out"):
            self._failures_in_a_row += 1
            self._recent.append(False)
        if not self._open and self._failing():
            self._trip(last_call, now)

    def _failing(self) -> bool:
        failed = self._recent.count(False)
        return (
            self._failures_in_a_row >= IN_A_ROW
            or (len(self._recent) >= WINDOW_MIN and failed * 2 >= len(self._recent))
            or self._rate_limited_in_a_row >= RATE_LIMITED_IN_A_ROW
        )

    def _record_probe(self, kind: OutcomeKind, last_call: int, now: float) -> None:
        if kind == "ok":
            self._open = self._probing = False
            self._next_open = OPEN_SECONDS
            self._forget()
        elif kind in ("rejected", "unsent"):
            self._admits_at = now
        else:
            self._trip(last_call, now)

    def _trip(self, last_call: int, now: float) -> None:
        self._open = True
        self._probing = False
        self._opened_at_call = last_call
        self._admits_at = now + self._next_open
        self._next_open = min(self._next_open * 2, OPEN_SECONDS_MAX)
