"""Bars that a benchmark must clear, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Bar:
    """`value` must be at most, at least or exactly `limit`."""

    what: str
    value: float
    rule: Literal["<=", ">=", "=="]
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the bar is cleared."""
        match self.rule:
            case "<=":
                return self.value <= self.limit
            case ">=":
                return self.value >= self.limit
        return self.value == self.limit

    def __str__(self) -> str:
        mark = "ok  " if self.holds else "FAIL"
        return f"{mark} {self.what}: {self.value:g} {self.rule} {self.limit:g}"


def verdict(bars: Sequence[Bar]) -> int:
    """Print the bars; the exit code: 0 if all hold, else 1."""
    for bar in bars:
        print(bar)
    return 0 if all(bar.holds for bar in bars) else 1


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        first, *rest = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]))
