"""How many tokens of records a pack should hold: found while packs come back. Pure.

A grid of sizes, and of each what was seen: the share of rows that had to be asked again
(`evidence.py`) and what a good record costs under the limits of the provider
(`cost.py`). The size goes to the cheapest one that does not lose too many rows: up one step at
a time, and only after enough good rows; down at once, and below the start after a few packs.

Invariant: the size stays between LEAST_TOKENS and what the context holds. It does not oscillate for
ever: a size that lost too many rows is tried again only after twice as many rows as the last time,
and a turn for the sake of speed alone waits until twice as many were seen as at the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from job.pack.cost import Bound, Cost, Limit, Pack, Rates, Tally
from job.pack.evidence import TRIED_ROWS, Evidence, Judgement, Shares, Stay
from job.pack.grid import (
    FIRST,
    LAST,
    LEAST_TOKENS,
    named,
    step_of,
    step_within,
    tokens_of,
)
from job.pack.packing import WIRE_TOKENS
from job.records import Lane

Known = Literal["fixed", "start", "growing", "rows", "cuts", "seconds", "enough"]
Why = Known | Bound
"""Why packs are as big as they are. fixed: the user said so. start: too little is known. growing:
bigger ones would be faster and are tried once enough rows came back well. rows, cuts: bigger ones
lost too many rows, or came back cut or broken. seconds: their answers would take too long. enough:
bigger ones would not be faster. context, minute, window: there is no room for bigger ones
(`Bound`)."""

MOST_AGAIN = 0.015
"""Share of rows asked again at most: between the article's 4,000 tokens (0.8 %) and its 6,000
(2.1 %), where losses begin to rise faster than calls fall. Rows that are lost are asked again; that
a model loses rows says that it reads the others with less care too."""
MOST_SECONDS = 30.0
"""Of a call, for packs above the start: half of the longest timeout of a fast one."""
BETTER = 0.08
"""What another size must save to be worth a move; of what is within half of it of the best the
smallest is taken. Where neither requests nor faults count, 5,000 tokens are within 8 % of any size:
they stay."""
WAIT_ROWS = 250
"""Rows after which a size that lost too many is tried again for the first time."""
DOUBLINGS = 10
"""Of that, at most."""
ROWS_REMEMBERED = 500
"""Rows of an earlier run that count for a size at most: it was another day."""
BARS_REMEMBERED = 3
"""And so many times that a size was left."""
CHANGES_SHOWN = 100
"""The last moves that `timing.json` lists."""
_STATE = 1


@dataclass(slots=True)
class _Bar:
    """A size that lost too many rows: how often, and until how many rows it is left alone."""

    times: int = 0
    until: int = 0


@dataclass(slots=True)
class PackSize:
    """The controller. `rates` may be set whenever the provider's limits prove to be others.
    `fixed`: the size that the user wants, None where it finds itself."""

    rates: Rates
    fixed: int | None = None
    step: int = 0
    why: Why = "start"
    limit: Limit | None = None
    """What a run waits for with packs of the present size; None: not known yet."""
    rows: int = 0
    _seen: dict[int, Evidence] = field(default_factory=dict)
    _cost: Cost = field(default_factory=Cost)
    _bars: dict[int, _Bar] = field(default_factory=dict)
    _tallies: dict[int, Tally] = field(default_factory=dict)
    _changes: list[dict[str, Any]] = field(default_factory=list)
    _stay: Stay = field(default_factory=Stay)
    _turned_at: int = 0
    _rising: bool = True

    def __post_init__(self) -> None:
        if self.fixed is not None:
            self.why = "fixed"
        self._keep_below_the_top()
        self._note_change()

    @property
    def wire(self) -> dict[Lane, int]:
        """Tokens of the records of a pack, as the provider counts them: slow packs are four fifths
        of fast ones, as at the start."""
        fast, slow = WIRE_TOKENS["fast"], WIRE_TOKENS["slow"]
        tokens = self.fixed or tokens_of(self.step)
        return {"fast": tokens, "slow": tokens * slow // fast}

    def observe(self, pack: Pack) -> None:
        """Learn from a pack that came back, and choose the size of the next."""
        step = step_of(pack.wire)
        self.rows += pack.rows
        self._seen.setdefault(step, Evidence()).add(pack.rows, pack.again, pack.whole)
        if pack.tokens_out:
            self._cost.add(step, pack)
        self._tallies.setdefault(step, Tally()).add(pack)
        self._stay.add(pack.again)
        if self.fixed is None:
            self._choose()

    def expected(self, wire: float) -> float:
        """The share of its rows that a pack of `wire` tokens will lose, by what was seen."""
        return Shares(self._seen).hoped(step_of(wire))

    def _choose(self) -> None:
        """Move to the best size that can be had now, and say why it is not bigger."""
        before = self.step
        self._lift_bars(Shares(self._seen).judge(MOST_AGAIN))
        shares = Shares(self._seen)
        judged = shares.judge(MOST_AGAIN)
        self._step_down(judged.lost)
        self._keep_below_the_top()
        if self._cost.all.calls:
            self._go_for_the_best(shares, judged)
        elif judged.lost < math.inf:
            self.why = self._lost_how(self.step)
        if self.step != before:
            self._stay = Stay()
            self._note_change()

    def _go_for_the_best(self, shares: Shares, judged: Judgement) -> None:
        """Move to the cheapest size, which takes an answer to know."""
        costs = self._costs(shares, judged)
        best = min(costs.values())
        if costs[self.step] > best * (1 + BETTER):
            good = (step for step, cost in costs.items() if cost <= best * (1 + BETTER / 2))
            self._move(min(good), judged)
        self._explain(shares, judged, cheap=costs[self.step] <= best * (1 + BETTER))

    def _lift_bars(self, judged: Judgement) -> None:
        """Let sizes be tried again: those that proved good after all, and those whose time has
        come; what these lost weighs less and less."""
        for step, bar in self._bars.items():
            if step <= judged.good:
                bar.until = 0
            elif 0 < bar.until <= self.rows:
                bar.until = 0
                above = {size: seen for size, seen in self._seen.items() if size >= step}
                while Shares(above).judge(MOST_AGAIN).lost < math.inf:
                    for seen in above.values():
                        seen.fade(0.5)

    def _step_down(self, lost: float) -> None:
        """Leave a size that loses too many rows, as all from `lost` on do: one step for each pack
        that shows it, below the start for each few."""
        if self.step >= max(lost, FIRST + 1) and (self.step > 0 or self._stay.shows_loss):
            bar = self._bars.setdefault(self.step, _Bar())
            bar.times = min(bar.times + 1, DOUBLINGS)
            bar.until = self.rows + WAIT_ROWS * 2 ** (bar.times - 1)
            self.step -= 1

    def _keep_below_the_top(self) -> None:
        """Leave a size that is more than a limit allows. What the context does not hold is never
        packed, whatever the size."""
        bound, top = self._top()
        if self.fixed is None and bound != "context" and self.step > top:
            self.step, self.why = top, bound
            self._rising, self._turned_at = False, self.rows

    def _costs(self, shares: Shares, judged: Judgement) -> dict[int, float]:
        """Seconds per good record by size, of those that may be had: all that fit and are not known
        to lose too many rows, as if those never tried lost no more than the biggest that was."""
        costs = {}
        for step in range(FIRST, max(self.step, self._top()[1]) + 1):
            if step == self.step or not (self._loses(step, judged) or self._too_long(step)):
                costs[step] = max(self._limits(step, shares).values())
        return costs

    def _loses(self, step: int, judged: Judgement) -> bool:
        """Whether a size loses too many rows, or did so not long ago."""
        barred = any(at <= step and bar.until for at, bar in self._bars.items())
        return barred or step >= judged.lost

    def _top(self) -> tuple[Bound, int]:
        """The biggest size that there is room for with its answers, and what bounds it."""
        bound, most = self._cost.most(self.rates)
        return bound, step_within(max(most, LEAST_TOKENS))

    def _limits(self, step: int, shares: Shares) -> dict[Limit, float]:
        wire = min(tokens_of(step), max(self._cost.most(self.rates)[1], LEAST_TOKENS))
        return self._cost.by_limit(step, wire, shares.hoped(step), self.rates)

    def _too_long(self, step: int) -> bool:
        return step > 0 and self._cost.seconds(step, tokens_of(step)) > MOST_SECONDS

    def _move(self, target: int, judged: Judgement) -> None:
        """Go to `target`; up only to one step above what is known to be good."""
        rising = target > self.step
        if rising:
            target = min(target, max(self.step, judged.good + 1))
        turned = rising != self._rising
        if target == self.step or (turned and self.rows < 2 * self._turned_at):
            return
        if turned:
            self._rising, self._turned_at = rising, self.rows
        self.step = target

    def _explain(self, shares: Shares, judged: Judgement, cheap: bool) -> None:
        limits = self._limits(self.step, shares)
        self.limit = max(limits.items(), key=lambda item: item[1])[0]
        bound, top = self._top()
        above = self.step + 1
        here = self._seen.get(self.step, Evidence())
        if above > top:
            self.why = bound
        elif self._too_long(above):
            self.why = "seconds"
        elif self._loses(above, judged):
            self.why = self._lost_how(above)
        elif cheap:
            self.why = "enough"
        elif judged.good < self.step and here.rows >= 2 * TRIED_ROWS:
            self.why = self._lost_how(self.step)
        else:
            self.why = "growing"

    def _lost_how(self, step: int) -> Why:
        """What packs from `step` on lost most of their rows by."""
        seen = [one for size, one in self._seen.items() if size >= step]
        cut, bad = sum(one.cut for one in seen), sum(one.bad for one in seen)
        return "cuts" if cut > bad / 2 else "rows"

    def _note_change(self) -> None:
        self._changes.append({"rows": self.rows, "tokens": self.wire["fast"]})
        del self._changes[:-CHANGES_SHOWN]

    def facts(self) -> dict[str, Any]:
        """For `timing.json`: the size in use and why, the sizes over the rows asked so far, and
        what was seen of each."""
        return {
            "tokens": self.wire,
            "why": self.why,
            "limit": self.limit,
            "changes": self._changes,
            "by_size": [
                {"tokens": tokens_of(step), **asdict(tally), "seconds": round(tally.seconds, 3)}
                for step, tally in sorted(self._tallies.items())
            ],
        }

    def state(self) -> dict[str, Any]:
        """What the next run should know, as JSON."""
        return {
            "version": _STATE,
            "step": self.step,
            "seen": {str(step): asdict(seen) for step, seen in self._seen.items()},
            "bars": {str(step): bar.times for step, bar in self._bars.items()},
            "cost": self._cost.state(),
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any] | None, rates: Rates, fixed: int | None = None
    ) -> PackSize:
        """Go on from what an earlier run learned; from the start where `state` is None or nothing
        that this version wrote."""
        if state is None or state.get("version") != _STATE:
            return cls(rates, fixed)
        try:
            known = cls(rates, fixed, min(max(FIRST, int(state["step"])), LAST))
            known._seen = {named(key): Evidence.of(kept) for key, kept in state["seen"].items()}
            known._bars = {named(key): _Bar(int(times)) for key, times in state["bars"].items()}
            known._cost = Cost.of(state["cost"])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return cls(rates, fixed)
        known.step = min(known.step, max(0, known._top()[1]))
        known._keep_below_the_top()
        known._changes[0]["tokens"] = known.wire["fast"]
        for seen in known._seen.values():
            seen.fade(min(1.0, ROWS_REMEMBERED / max(seen.rows, 1.0)))
        for bar in known._bars.values():
            bar.times = min(max(bar.times, 1), BARS_REMEMBERED)
            bar.until = WAIT_ROWS * 2 ** (bar.times - 1)
        return known
