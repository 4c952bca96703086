"""What a 429 teaches: how long to pause, and how many requests a second the provider takes.

Invariant: the calls that were in flight when the provider first said no are one refusal, however
many of them are refused; only a call granted after it can be the next.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

FIRST_PAUSE = 1.0
LONGEST_BACKOFF = 60.0
LONGEST_PAUSE = 600.0
"""A provider that asks for a longer wait has no quota left: `ask` stops the run (DESIGN 4)."""

IDLE_SECONDS = 10.0
"""After so long without a call in flight the provider's bucket may have filled up: what was
counted before says nothing about its rate."""
RECENT_SECONDS = 10.0
MEASURE_SECONDS = 60.0
"""Refusals within so long are measured as one stretch: the longer, the more exact."""
SLOW_DOWN = 0.8
UNDERCUT = 0.96
"""Below the measured rate, so that the bucket of the provider recovers from its refusal."""
LOWEST_CUT = 0.5
"""No single refusal lowers the rate by more: a measurement can be wrong."""
ENOUGH_TO_MEASURE = 3
ENOUGH_TO_TRUST = 20
"""Calls between two refusals: the error of the measured rate is one call in so many."""
GROWTH = 0.005
"""Requests a second gained per good call: 5 % in 10 s when the rate is used in full."""
GROWTH_NEAR = 0.001
GROWTH_BEYOND = 0.02
"""Near the measured rate 1 % in 10 s; well beyond it, where it has proved outdated, 20 %."""
NEAR_FROM, NEAR_TO = 0.95, 1.1


class Pause:
    """One pause for all grants. Times are seconds."""

    def __init__(self) -> None:
        self.until = -math.inf
        self._backoff = FIRST_PAUSE

    def told(self, retry_after: float, now: float) -> None:
        """The provider asked to wait `retry_after` seconds."""
        self.until = max(self.until, now + min(retry_after, LONGEST_PAUSE))

    def back_off(self, now: float) -> None:
        """A refusal that did not say how long: 1, 2, 4 ... 60 s until a call goes well."""
        self.until = max(self.until, now + self._backoff)
        self._backoff = min(self._backoff * 2, LONGEST_BACKOFF)

    def good(self) -> None:
        """A call granted after the last refusal went well."""
        self._backoff = FIRST_PAUSE


@dataclass(slots=True)
class _Refusal:
    """A moment when the provider's bucket was empty, and how many calls it had taken until then."""

    at: float
    call: int
    taken: int


class FoundRate:
    """The rate the provider takes, found from its refusals; None until there was one.

    Its bucket is empty at every refusal, so that what it took between two of them, divided by the
    time between them, is the rate at which it refills. Before the first refusal only the rate of
    the last seconds is known, which the provider's burst may have carried: that is cut by SLOW_DOWN
    until the second one measures.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        self._measured: float | None = None
        self._taken = 0
        self._recent: deque[float] = deque(maxlen=10_000)
        self._refusals: deque[_Refusal] = deque()
        self._busy_since = -math.inf

    def granted(self, now: float, idle_since: float | None) -> None:
        """A call was granted; None: others were in flight, else when the last one had ended."""
        if idle_since is not None and now - idle_since >= IDLE_SECONDS:
            self._refusals.clear()
            self._busy_since = now
        elif not self._taken:
            self._busy_since = now
        self._taken += 1
        self._recent.append(now)

    def good(self) -> None:
        """A call granted after the last refusal went well: the rate grows a little."""
        if self.rate is None:
            return
        growth = GROWTH
        if self._measured is not None and self.rate >= self._measured * NEAR_FROM:
            growth = GROWTH_NEAR if self.rate < self._measured * NEAR_TO else GROWTH_BEYOND
        self.rate += growth * min(1.0, self.rate)

    def refused_again(self, call: int) -> None:
        """Call number `call` was in flight at the last refusal and is refused too."""
        self._taken -= 1
        for refusal in self._refusals:
            if refusal.call >= call:
                refusal.taken -= 1

    def refused(self, call: int, granted_at: float, last_call: int, rate: float | None) -> None:
        """Call number `call` is a new refusal; `rate` is what was allowed (None: no limit)."""
        self._taken -= 1
        while len(self._refusals) > 1 and self._refusals[0].at < granted_at - MEASURE_SECONDS:
            self._refusals.popleft()
        taken, seconds = 0, 0.0
        if self._refusals:
            taken = self._taken - self._refusals[0].taken
            seconds = granted_at - self._refusals[0].at
        if taken >= ENOUGH_TO_MEASURE and seconds > 0:
            measured, cut = taken / seconds, UNDERCUT
        else:
            measured, cut = self._recent_rate(granted_at), SLOW_DOWN
        found = measured * cut
        if rate is not None:
            found = min(rate * cut, max(rate * LOWEST_CUT, found))
        self.rate = found
        self._measured = measured if taken >= ENOUGH_TO_TRUST else None
        self._refusals.append(_Refusal(granted_at, last_call, self._taken))

    def forget(self) -> None:
        """The rate has grown past what is allowed anyway."""
        self.rate = None
        self._measured = None

    def _recent_rate(self, now: float) -> float:
        since = self._refusals[-1].at if self._refusals else self._busy_since
        seconds = min(RECENT_SECONDS, max(1.0, now - since))
        return max(1, sum(at > now - seconds for at in self._recent)) / seconds
