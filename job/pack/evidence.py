"""What was seen of packs of each size: how many rows had to be asked again. Pure.

Invariant: a bigger pack is never held for safer than a smaller one: where the counts say so, they
are pooled. Counts are capped, so that what a provider does now outweighs what it did long ago.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PRIOR_BAD, PRIOR_ROWS = 1.0, 50.0
"""Before anything was seen a size is held for as bad as the article's 6,000 tokens (2.1 % of rows
lost), with the weight of 50 rows: about 100 clean rows show that it is better than that."""
BAD_A_PACK = 5
"""A reply counts for so many bad rows at most: those of one reply are no independent events, and
one that is cut or broken by chance must not outweigh a day of good ones."""
ROWS_KEPT = 1000
"""Rows that count for a size at most: a share of 1.5 % is known to 0.4 %, and a burst of cut
answers still shows after four packs."""
TRIED_ROWS = 100
"""Rows of a size, or of bigger ones, before it can be held for good: those of smaller ones prove
nothing."""
COMPARED_ROWS = 200
"""Rows of smaller sizes before they are compared with."""
NO_BETTER = 0.7
"""Smaller packs that lose this part of what bigger ones lose are no better: then it is not the size
that loses rows."""
PACKS_ENOUGH = 6
"""Packs of a size before it is left for a smaller one than the start. A provider that spoils one
answer in ten, whatever its size, looks for a while as if smaller packs were safer: with this it
takes 10 % more calls than at a fixed size, without it 20 %, and twice as many now and then."""
NONE = -1000
"""Below every size."""
SURE_BAD, SURE_GOOD = 1.0, 1.28
"""Deviations of the posterior that a share has to be above the bound to be too much (84 of 100),
below it to be fine (90 of 100)."""


def counts(kept: Mapping[str, Any]) -> dict[str, float]:
    """Numbers that count something, by name. Raises ValueError."""
    numbers = {str(name): float(value) for name, value in kept.items()}
    if not all(0 <= value < math.inf for value in numbers.values()):
        raise ValueError("a count is negative or no number")
    return numbers


@dataclass(slots=True)
class Evidence:
    """Packs of one size. `bad`: rows asked again, at most BAD_A_PACK of a reply; `cut`: the part of
    them that came from replies that were not whole."""

    rows: float = 0.0
    bad: float = 0.0
    cut: float = 0.0

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Evidence:
        """As it was kept (`asdict`). Raises ValueError for what is no evidence."""
        seen = cls(**counts(kept))
        if not seen.cut <= seen.bad <= seen.rows:
            raise ValueError("more rows are bad than there are")
        return seen

    def add(self, rows: int, again: int, whole: bool) -> None:
        """A pack of `rows` came back, `again` of them have to be asked again."""
        bad = min(again, BAD_A_PACK)
        # Rows are capped alike, or a big pack that is lost whole would count as nearly good.
        self.rows += rows * bad / again if again else rows
        self.bad += bad
        self.cut += 0 if whole else bad
        if self.rows > ROWS_KEPT:
            self.fade(ROWS_KEPT / self.rows)

    def fade(self, part: float) -> None:
        """Let it weigh only `part` of what it does."""
        self.rows, self.bad, self.cut = self.rows * part, self.bad * part, self.cut * part


@dataclass(slots=True)
class Stay:
    """The packs that came back since the present size was chosen; `bad`: those that lost rows. Of
    whatever size: where the context bounds them, all are smaller than wanted."""

    packs: int = 0
    bad: int = 0

    def add(self, again: int) -> None:
        """One more, that lost `again` rows."""
        self.packs += 1
        self.bad += again > 0

    @property
    def shows_loss(self) -> bool:
        """Whether so many of them are bad that it can be the size: half of PACKS_ENOUGH or more, or
        all of a few."""
        enough = self.packs >= PACKS_ENOUGH and self.bad >= PACKS_ENOUGH // 2
        return enough or self.packs == self.bad >= PACKS_ENOUGH // 2


@dataclass(frozen=True, slots=True)
class Share:
    """The share of rows asked again: posterior of a Beta distribution. `seen`: the plain share."""

    rows: float = 0.0
    bad: float = 0.0

    def with_rows(self, more: Share) -> Share:
        """Of both together."""
        return Share(self.rows + more.rows, self.bad + more.bad)

    @property
    def seen(self) -> float:
        """As counted; 0 where nothing was."""
        return self.bad / self.rows if self.rows else 0.0

    @property
    def hoped(self) -> float:
        """With the weight of the prior for the good: a few rows do not speak against a trial."""
        return self.bad / (self.rows + PRIOR_ROWS)

    @property
    def mean(self) -> float:
        """With the prior."""
        return (self.bad + PRIOR_BAD) / (self.rows + PRIOR_ROWS)

    @property
    def deviation(self) -> float:
        """Of the posterior."""
        mean = self.mean
        return math.sqrt(mean * (1 - mean) / (self.rows + PRIOR_ROWS + 1))

    def too_much(self, bound: float) -> bool:
        """Whether it is above `bound`, fairly surely."""
        return self.mean - SURE_BAD * self.deviation > bound

    def fine(self, bound: float) -> bool:
        """Whether it is below `bound`, fairly surely."""
        return self.mean + SURE_GOOD * self.deviation <= bound


@dataclass(frozen=True, slots=True)
class Judgement:
    """`lost`: the smallest size that loses too many rows, infinity: none is known to. `good`: the
    biggest that is known not to, or to lose no more than much smaller ones; NONE: none is."""

    lost: float = math.inf
    good: int = NONE


class Shares:
    """The share of rows asked again by size, rising with it (pool adjacent violators)."""

    def __init__(self, seen: Mapping[int, Evidence]) -> None:
        self._sizes = sorted(size for size in seen if seen[size].rows)
        self._rows = {size: seen[size].rows for size in self._sizes}
        self._below: dict[int, Share] = {}
        """Of all sizes up to one together."""
        self._blocks: list[tuple[int, Share]] = []
        """The biggest size of each block, and its share."""
        below = Share()
        for size in self._sizes:
            one = Share(seen[size].rows, seen[size].bad)
            below = self._below[size] = below.with_rows(one)
            while self._blocks and self._blocks[-1][1].seen > one.seen:
                one = self._blocks.pop()[1].with_rows(one)
            self._blocks.append((size, one))

    def at(self, size: int) -> Share:
        """The share of packs of `size`; beyond the biggest seen as there, for want of better."""
        for last, share in self._blocks:
            if size <= last:
                return share
        return self._blocks[-1][1] if self._blocks else Share()

    def hoped(self, size: int) -> float:
        """The share to expect of packs of `size`, at least that of every smaller one."""
        upto = next((n for n, (last, _) in enumerate(self._blocks) if size <= last), None)
        blocks = self._blocks if upto is None else self._blocks[: upto + 1]
        return max((share.hoped for _, share in blocks), default=0.0)

    def judge(self, bound: float) -> Judgement:
        """Which sizes lose more than `bound` because of their size, and up to which they do not."""
        lost, rows = math.inf, 0.0
        for size in reversed(self._sizes):
            share = self.at(size)
            rows += self._rows[size]
            if share.too_much(bound):
                if self._no_worse(size, share):
                    return Judgement(lost, size)
                lost = size
            elif rows >= TRIED_ROWS and share.fine(bound):
                return Judgement(lost, size)
        return Judgement(lost)

    def _no_worse(self, size: int, share: Share) -> bool:
        """Whether packs from two steps below `size` on lose about as much: then it is not the size
        that loses rows."""
        smaller = next((self._below[at] for at in reversed(self._sizes) if at <= size - 2), Share())
        return smaller.rows >= COMPARED_ROWS and smaller.seen >= NO_BETTER * share.seen
