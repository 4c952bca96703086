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
"""After so long without anybody asking the provider's bucket may have filled up: what was counted
before says nothing about its rate."""
RECENT_SECONDS = 10.0
SLOW_DOWN = 0.8
UNDERCUT = 0.96
"""Below the measured rate, so that the bucket of the provider recovers from its refusal."""
LOWEST_CUT = 0.5
"""No single refusal lowers the rate by more: a measurement can be wrong."""
LOWEST_GUESS = 1.0
"""Requests a second; only a measurement goes below: one refusal in a quiet hour says little."""
ENOUGH_TO_MEASURE = 3
ENOUGH_TO_TRUST = 20
"""Calls between two refusals: the error of the measured rate is one call in so many. Measured over
the stretch of refusals that has enough."""
GROWTH = 0.005
"""Requests a second gained per good call: 5 % in 10 s when the rate is used in full."""
GROWTH_NEAR = 0.001
"""Near the measured rate 1 % in 10 s, below one request a second even less: each refusal there
costs a pause that few calls have to pay for."""
GROWTH_BEYOND = 0.02
"""20 % in 10 s well beyond the measured rate, which has proved outdated."""
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

    def busy_again(self, idle_since: float, now: float) -> None:
        """Somebody asks again, after nobody had since `idle_since`."""
        if now - idle_since >= IDLE_SECONDS or not self._taken:
            self._refusals.clear()
            self._busy_since = now

    def granted(self, now: float) -> None:
        """A call was granted."""
        self._taken += 1
        self._recent.append(now)

    def good(self) -> None:
        """A call granted after the last refusal went well: the rate grows a little."""
        if self.rate is None:
            return
        if self._measured is None or self.rate < self._measured * NEAR_FROM:
            self.rate += GROWTH
        elif self.rate < self._measured * NEAR_TO:
            self.rate += GROWTH_NEAR * min(1.0, self.rate)
        else:
            self.rate += GROWTH_BEYOND

    def not_taken(self, call: int) -> None:
        """Call number `call` was not sent, or was in flight at the last refusal and is refused
        too."""
        self._taken -= 1
        for refusal in self._refusals:
            if refusal.call >= call:
                refusal.taken -= 1

    def refused(self, call: int, granted_at: float, last_call: int, rate: float | None) -> None:
        """Call number `call` is a new refusal; `rate` is what was allowed (None: no limit).

        Where nothing was taken since the last one, the pause was too short or the provider is out
        of order: the rate is not to blame and stays.
        """
        self._taken -= 1
        if self._refusals and self._taken == self._refusals[-1].taken:
            return
        while len(self._refusals) > 1 and self._taken - self._refusals[1].taken >= ENOUGH_TO_TRUST:
            self._refusals.popleft()
        taken, seconds = 0, 0.0
        if self._refusals:
            taken = self._taken - self._refusals[0].taken
            seconds = granted_at - self._refusals[0].at
        if taken >= ENOUGH_TO_MEASURE and seconds > 0:
            found, cut = taken / seconds, UNDERCUT
        else:
            found, cut = max(self._recent_rate(granted_at), LOWEST_GUESS), SLOW_DOWN
        self._measured = found if taken >= ENOUGH_TO_TRUST else None
        if rate is None:
            self.rate = found * cut
        else:
            self.rate = max(min(found, rate) * cut, rate * LOWEST_CUT)
        self._refusals.append(_Refusal(granted_at, last_call, self._taken))

    def forget(self) -> None:
        """The rate has grown past what is allowed anyway."""
        self.rate = self._measured = None

    def _recent_rate(self, now: float) -> float:
        since = self._refusals[-1].at if self._refusals else self._busy_since
        seconds = min(RECENT_SECONDS, max(1.0, now - since))
        return max(1, sum(at > now - seconds for at in self._recent)) / seconds
