"""What is learned from numbers that come one by one: their mean and deviation, a line through
pairs of them. Pure.

Invariant: merging is associative and commutative, so the order in which runs, actors and replies
are put together does not matter; `aged` keeps mean and deviation and lowers the weight alone, so
that what comes later counts more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

Numbers = Sequence[float]
"""As they are kept: finite, in the order of the fields."""


@dataclass(frozen=True, slots=True)
class Moments:
    """`n` values (a part of a count where they are old), their mean, and `moment`, the sum of
    their squared distances from it (Welford 1962, merged as Chan et al. 1979)."""

    n: float = 0.0
    mean: float = 0.0
    moment: float = 0.0

    def seen(self, value: float) -> Moments:
        """With one more value."""
        return self.merged(Moments(1.0, value))

    def merged(self, other: Moments) -> Moments:
        """All values of both."""
        n = self.n + other.n
        if n == 0:
            return self
        delta, share = other.mean - self.mean, other.n / n
        apart = delta * delta * self.n * share
        return Moments(n, self.mean + delta * share, self.moment + other.moment + apart)

    def aged(self, at_most: float) -> Moments:
        """The same mean and deviation, of no more weight than `at_most` values."""
        if self.n <= at_most:
            return self
        return Moments(at_most, self.mean, self.moment * at_most / self.n)

    @property
    def deviation(self) -> float:
        """Of one value; 0 where fewer than two were seen."""
        return math.sqrt(self.moment / (self.n - 1)) if self.n > 1 else 0.0

    @classmethod
    def of(cls, numbers: Numbers) -> Self:
        """The inverse of `numbers`. Raises ValueError for what no Moments gives."""
        n, mean, moment = _checked(numbers, 3)
        if n < 0 or moment < 0:
            raise ValueError(f"no moments: {numbers!r}")
        return cls(n, mean, moment)

    def numbers(self) -> list[float]:
        """To be kept."""
        return [self.n, self.mean, self.moment]


@dataclass(frozen=True, slots=True)
class Line:
    """What `y` is at a given `x`, from `n` pairs: their means and the sums of squares and products
    of their distances from these."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def seen(self, x: float, y: float) -> Line:
        """With one more pair."""
        return self.merged(Line(1.0, x, y))

    def merged(self, other: Line) -> Line:
        """All pairs of both."""
        n = self.n + other.n
        if n == 0:
            return self
        share = other.n / n
        dx, dy, apart = other.x - self.x, other.y - self.y, self.n * share
        return Line(
            n,
            self.x + dx * share,
            self.y + dy * share,
            self.xx + other.xx + dx * dx * apart,
            self.xy + other.xy + dx * dy * apart,
            self.yy + other.yy + dy * dy * apart,
        )

    def aged(self, at_most: float) -> Line:
        """The same line and deviation, of no more weight than `at_most` pairs."""
        if self.n <= at_most:
            return self
        by = at_most / self.n
        return Line(at_most, self.x, self.y, self.xx * by, self.xy * by, self.yy * by)

    @property
    def slope(self) -> float:
        """Never falling. As if one pair more, of half as much, lay on the straight from 0: pairs
        that are all alike do not say how `y` grows."""
        if self.x <= 0:
            return 0.0
        pull = (self.x / 2) ** 2
        return max(0.0, (self.xy + pull * self.y / self.x) / (self.xx + pull))

    def at(self, x: float) -> float:
        """What `y` is at `x`, at least 0."""
        return max(0.0, self.y + self.slope * (x - self.x))

    @property
    def deviation(self) -> float:
        """Of `y` from the line; 0 where fewer than two pairs were seen."""
        if self.n <= 1:
            return 0.0
        slope = self.slope
        left = self.yy - 2 * slope * self.xy + slope * slope * self.xx
        return math.sqrt(max(0.0, left) / (self.n - 1))

    @classmethod
    def of(cls, numbers: Numbers) -> Self:
        """The inverse of `numbers`. Raises ValueError for what no Line gives."""
        n, x, y, xx, xy, yy = _checked(numbers, 6)
        if n < 0 or xx < 0 or yy < 0:
            raise ValueError(f"no line: {numbers!r}")
        return cls(n, x, y, xx, xy, yy)

    def numbers(self) -> list[float]:
        """To be kept."""
        return [self.n, self.x, self.y, self.xx, self.xy, self.yy]


def _checked(numbers: Numbers, count: int) -> list[float]:
    if not isinstance(numbers, list | tuple) or len(numbers) != count:
        raise ValueError(f"{count} numbers were expected, not {numbers!r}")
    try:
        values = [float(number) for number in numbers]
    except TypeError as error:
        raise ValueError(f"no numbers: {numbers!r}") from error
    if not all(map(math.isfinite, values)):
        raise ValueError(f"not finite: {numbers!r}")
    return values
