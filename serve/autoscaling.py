"""How many replicas the gateway has: quick to grow, slow to shrink, never in leaps.

Invariant: a decision lies within the bounds it is given; within any `up_every` seconds at most
`up_most` replicas are added, within any `down_every` at most `down_most` taken away; one is added
only if it was wanted for `up_after` seconds without a break, and taken away only if none was
wanted for `down_after`.

Ray Serve's own fields (`upscale_delay_s`, `upscaling_factor`) say how long to wait and what share
of the difference to take, but not how many replicas in how much time. It multiplies and delays what
a policy returns by those fields: serve/production.yaml sets the delays to 0 and leaves the factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

IN_FLIGHT = 10
"""Requests being answered or waiting that one replica is wanted for."""
FEWEST, MOST = 3, 20
"""Replicas in production. Three: while one is replaced and another fails, one is left."""
LOOK_BACK = 10.0
"""Seconds over which Ray Serve averages the requests; how long something lasts the policy sees."""
_STATE = "history"


@dataclass(frozen=True)
class Pace:
    """How fast the number may change; times in seconds."""

    up_after: float = 30.0
    up_most: int = 4
    up_every: float = 60.0
    down_after: float = 300.0
    down_most: int = 2
    down_every: float = 120.0


@dataclass(frozen=True)
class Step:
    """Since `time`, at least (in `History.least`) or at most (in `most`) so many were wanted."""

    time: float
    wanted: int


@dataclass(frozen=True)
class Change:
    """`count` replicas more (less, where negative), decided at `time`."""

    time: float
    count: int


@dataclass(frozen=True)
class History:
    """What was wanted and what was done. `least` rises and `most` falls from step to step, so each
    is no longer than there are numbers between the bounds."""

    least: tuple[Step, ...] = ()
    most: tuple[Step, ...] = ()
    changes: tuple[Change, ...] = ()


def decide(
    history: History, now: float, wanted: int, target: int, bounds: tuple[int, int], pace: Pace
) -> tuple[int, History]:
    """How many replicas there shall be, and the history that goes with it. `target`: as many as
    there shall be so far; `bounds`: the fewest and the most."""
    fewest, most = bounds
    wanted, target = (min(max(count, fewest), most) for count in (wanted, target))
    history = _seen(history, now, wanted, target, pace)
    added = sum(c.count for c in history.changes if c.count > 0 and now - c.time < pace.up_every)
    taken = -sum(c.count for c in history.changes if c.count < 0 and now - c.time < pace.down_every)
    count = target
    if history.least[0].wanted > target:
        count = min(history.least[0].wanted, target + max(0, pace.up_most - added))
    elif history.most[0].wanted < target:
        count = max(history.most[0].wanted, target - max(0, pace.down_most - taken))
    if count != target:
        done = Change(now, count - target)
        history = replace(history, changes=(*history.changes, done))
    return count, history


def _seen(history: History, now: float, wanted: int, target: int, pace: Pace) -> History:
    """The history with what is wanted now, without what no longer matters. A wall clock that was
    set back makes what it now calls the future the present: that only delays."""
    least = _risen(history.least or (Step(now, target),), now, wanted, 1)
    most = _risen(history.most or (Step(now, target),), now, wanted, -1)
    longest = max(pace.up_every, pace.down_every)
    changes = (Change(min(c.time, now), c.count) for c in history.changes)
    return History(
        least=_since(least, now - pace.up_after),
        most=_since(most, now - pace.down_after),
        changes=tuple(c for c in changes if now - c.time < longest),
    )


def _risen(steps: tuple[Step, ...], now: float, wanted: int, sign: int) -> tuple[Step, ...]:
    """`steps` after `wanted` at `now`. Those it undercuts (exceeds, where `sign` is -1) end, and it
    holds since the first of them."""
    kept = [Step(min(step.time, now), step.wanted) for step in steps]
    since = now
    while kept and sign * kept[-1].wanted >= sign * wanted:
        since = kept.pop().time
    return (*kept, Step(since, wanted))


def _since(steps: tuple[Step, ...], time: float) -> tuple[Step, ...]:
    """From the step that holds since before `time` on: the first says what held all the time
    since."""
    first = max((place for place, step in enumerate(steps) if step.time <= time), default=0)
    return steps[first:]


class Policy:
    """`decide` as Ray Serve calls it, by its import path in serve/production.yaml; the keyword
    arguments are those of `Pace`. Serve keeps the history, and forgets it when the application is
    deployed anew."""

    def __init__(self, **pace: float) -> None:
        self._pace = Pace(**pace)  # type: ignore[arg-type]  # numbers of a YAML file

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """`context`: Ray Serve's AutoscalingContext."""
        count, history = decide(
            context.policy_state.get(_STATE, History()),
            context.current_time,
            math.ceil(context.total_num_requests / context.config.get_target_ongoing_requests()),
            context.target_num_replicas,
            (context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas),
            self._pace,
        )
        return count, {_STATE: history}
