"""A provider in simulated time, and a run that sends it packs of whatever size it is told.

Written from what the article measured, not from the controller: calls that take longer for more
tokens, limits a minute, and rows that are lost more often in bigger packs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

from job.pack.cost import Pack, Rates
from job.pack.grid import tokens_of
from job.pack.size import PackSize

Curve = Sequence[tuple[float, float]]
"""Points (tokens, value), linear between them, flat outside."""

LATENCY: Curve = (
    (100, 0.8),
    (1000, 1.2),
    (2000, 1.8),
    (4000, 3.1),
    (6000, 4.5),
    (8000, 6.2),
    (16000, 13.0),
)
ARTICLE: Curve = ((1000, 0.001), (2000, 0.003), (4000, 0.008), (6000, 0.021), (8000, 0.053))
"""Share of rows lost by tokens of a pack."""

REQUESTS = Rates(rpm=60, tpm=None, concurrency=20, context=16_384)
TOKENS = Rates(rpm=None, tpm=60_000, concurrency=20, context=16_384)
ALONE = Rates(rpm=None, tpm=None, concurrency=4, context=16_384)
SMALL = Rates(rpm=60, tpm=None, concurrency=20, context=8192)
MANY_ROWS = Rates(rpm=60, tpm=None, concurrency=20, context=65_536)
SMALLEST = round(tokens_of(-7))
HELD = 9766
"""The biggest size of the grid that 16,384 tokens hold with answers a third as long."""


def at(curve: Curve, tokens: float) -> float:
    """The value of `curve` at `tokens`."""
    if tokens <= curve[0][0]:
        return curve[0][1]
    for (x0, y0), (x1, y1) in pairwise(curve):
        if tokens <= x1:
            return y0 + (y1 - y0) * (tokens - x0) / (x1 - x0)
    return curve[-1][1]


@dataclass
class World:
    """`lost`: share of rows by tokens of a pack; `cut`: the calls, by number, whose answer is cut
    half way. Rows have `row` tokens and answers of `answer`."""

    rates: Rates
    lost: Curve = ((1, 0.0),)
    latency: Curve = LATENCY
    row: int = 130
    answer: int = 45
    instructions: int = 260
    cut: Callable[[int], bool] = lambda call: False
    calls: int = 0
    sizes: list[int] = field(default_factory=list)
    _debt: float = 0.5

    def run(self, rows: int, size: PackSize | int) -> float:
        """Ask about `rows` rows; the seconds until the last one is answered. `size`: the
        controller, or a fixed number of tokens."""
        now = free_at = alone = 0.0
        waiting = float(rows)
        flying: list[tuple[float, int, Pack]] = []
        while flying or waiting >= 1 or alone >= 1:
            may_send = len(flying) < self.rates.concurrency and (waiting >= 1 or alone >= 1)
            if flying and (not may_send or flying[0][0] <= free_at):
                now, _, pack = heapq.heappop(flying)
                twice = pack.again * pack.again / pack.rows if pack.whole else 0.0
                alone += twice
                waiting += pack.again - twice
                if isinstance(size, PackSize) and pack.rows > 1:
                    size.observe(pack)
                continue
            now = max(now, free_at)
            wire = size.wire["fast"] if isinstance(size, PackSize) else size
            n = min(max(1, wire // self.row), math.floor(waiting))
            if alone >= 1:
                alone, n = alone - 1, 1
            else:
                waiting -= n
                self.sizes.append(wire)
            pack = self._answer(n)
            heapq.heappush(flying, (now + pack.seconds, self.calls, pack))
            free_at = now + 60 / (self.rates.rpm or math.inf)
            if self.rates.tpm:
                spent = pack.tokens_in + pack.tokens_out
                free_at = max(free_at, now + spent * 60 / self.rates.tpm)
        return now

    def _answer(self, n: int) -> Pack:
        self.calls += 1
        wire = n * self.row
        cut = n > 1 and self.cut(self.calls)
        self._debt += n * at(self.lost, wire) if n > 1 else 0.0
        lost = math.floor(min(n, self._debt)) if n > 1 else 0
        self._debt -= lost
        return Pack(
            wire=wire,
            rows=n,
            again=max(lost, n // 2) if cut else lost,
            tokens_in=wire + self.instructions,
            tokens_out=n * self.answer,
            seconds=at(self.latency, wire + self.instructions),
            whole=not cut,
        )


@dataclass
class Unreliable(World):
    """Spoils one pack in five, whatever its size: half of them are cut, the others lack a tenth of
    their rows. `chance` decides which."""

    chance: Random = field(default_factory=Random)

    def _answer(self, n: int) -> Pack:
        pack = super()._answer(n)
        drawn = self.chance.random()
        if n == 1 or drawn > 0.2:
            return pack
        whole = drawn < 0.1
        again = max(1, n // 10) if whole else max(1, int(n * self.chance.uniform(0.1, 0.7)))
        return replace(pack, again=again, whole=whole)


def fed(size: PackSize, packs: int, lost: float = 0.0, whole: bool = True) -> None:
    """`packs` of the size that it wants come back, each with that share of its rows lost."""
    debt = 0.0
    for _ in range(packs):
        rows = size.wire["fast"] // 130
        debt += rows * lost
        again, debt = int(debt), debt - int(debt)
        size.observe(Pack(rows * 130, rows, again, rows * 130 + 260, rows * 45, rows * 0.1, whole))


def curve(base: float, share: float, steepness: float) -> Curve:
    """Rows lost: `share` at 6,000 tokens, `base` whatever the size."""
    sizes = range(500, 17_000, 500)
    return [(size, min(0.5, base + share * (size / 6000) ** steepness)) for size in sizes]
