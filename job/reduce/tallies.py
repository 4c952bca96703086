"""Counts of bounded size that can be taken over any part of the records and merged.

Invariant: merging is associative and commutative. Where a tally must give up precision to stay
small, how much it gives up follows from what was counted alone: a part gives up no more than the
whole would, so the parts of a whole always merge to the whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

MINUTE_US = 60_000_000
CELLS = 720
"""Cells of a `Timeline`: half a day of minutes."""
NAMES = 200
"""Different names that a `Names` counts exactly: some 70 KB."""
TOP = 5
"""Names that are shown of a theme."""
CANDIDATES = 20
"""Names among which the `TOP` are sought where names were counted in a sample: a name with a
hundredth of the records is among them."""
_FRESH = 4_096
"""Hashes that wait to be sorted in: a set of them takes some 300 KB."""


def hash64(name: str) -> int:
    """8 bytes of BLAKE2b: the same in every process; two of a million names meet by 3 in 10^8."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


class Distinct:
    """How many different hashes there were, exactly, at 8 bytes each."""

    __slots__ = ("_fresh", "_sorted")

    def __init__(self) -> None:
        self._fresh: set[int] = set()
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)

    def add(self, value: int) -> None:
        """Count `value`, an unsigned number of 64 bits, if it is new."""
        self._fresh.add(value)
        if len(self._fresh) >= _FRESH:
            self.values()

    def absorb(self, other: Distinct) -> None:
        """Add what `other` counted."""
        self._fresh |= other._fresh
        if len(other._sorted):
            self._sorted = np.union1d(self._sorted, other._sorted)
        if len(self._fresh) >= _FRESH:
            self.values()

    def values(self) -> NDArray[np.uint64]:
        """The hashes, sorted, each once."""
        if self._fresh:
            fresh = np.fromiter(self._fresh, np.uint64, len(self._fresh))
            self._sorted, self._fresh = np.union1d(self._sorted, fresh), set()
        return self._sorted

    def __len__(self) -> int:
        return len(self.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distinct) and np.array_equal(self.values(), other.values())

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Timeline:
    """Records by time, in cells of 2 ** `doublings` minutes since 1970: the narrowest of which
    there are at most `CELLS`."""

    doublings: int = 0
    cells: Counter[int] = field(default_factory=Counter)

    def add(self, time: int) -> None:
        """Count a record at `time` (microseconds)."""
        self.cells[time // MINUTE_US >> self.doublings] += 1
        self._fit()

    def absorb(self, other: Timeline) -> None:
        """Add what `other` counted."""
        self._widen(other.doublings)
        for cell, n in other.cells.items():
            self.cells[cell >> (self.doublings - other.doublings)] += n
        self._fit()

    def minutes(self) -> int:
        """The width of a cell."""
        return 1 << self.doublings

    def _fit(self) -> None:
        while len(self.cells) > CELLS:
            self._widen(self.doublings + 1)

    def _widen(self, doublings: int) -> None:
        if doublings > self.doublings:
            wider: Counter[int] = Counter()
            for cell, n in self.cells.items():
                wider[cell >> (doublings - self.doublings)] += n
            self.cells, self.doublings = wider, doublings


@dataclass(slots=True)
class Names:
    """Records by a name they have.

    Up to `NAMES` names are counted exactly. Of more, only the records of one in 2 ** `thinned` are
    counted, drawn evenly by the hash of their id: enough to tell which names have most; how many
    records those have must then be counted in a second look (`job.reduce.again`).
    """

    thinned: int = 0
    draws: dict[str, Counter[int]] = field(default_factory=dict)
    """By name: records by how far the thinning can go before they are left out."""

    def add(self, name: str, record: int) -> None:
        """Count the record whose id has the hash `record`."""
        draw = (record & -record).bit_length() - 1 if record else 63
        if draw >= self.thinned:
            self.draws.setdefault(name, Counter())[draw] += 1
            self._fit()

    def absorb(self, other: Names) -> None:
        """Add what `other` counted."""
        for name, draws in other.draws.items():
            self.draws.setdefault(name, Counter()).update(draws)
        self._thin(max(self.thinned, other.thinned))
        self._fit()

    @property
    def exact(self) -> bool:
        """Whether every record was counted."""
        return self.thinned == 0

    def top(self, size: int) -> list[tuple[str, int]]:
        """The `size` names with most records counted, and how many."""
        counts = [(name, draws.total()) for name, draws in self.draws.items()]
        return sorted(counts, key=lambda item: (-item[1], item[0]))[:size]

    def _fit(self) -> None:
        while len(self.draws) > NAMES:
            self._thin(self.thinned + 1)

    def _thin(self, thinned: int) -> None:
        self.thinned = thinned
        if not thinned:
            return
        kept = {
            name: Counter({draw: n for draw, n in draws.items() if draw >= thinned})
            for name, draws in self.draws.items()
        }
        self.draws = {name: draws for name, draws in kept.items() if draws}
