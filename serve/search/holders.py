"""Which segments may have the vector of a text: all are looked through once, not for each run anew.

Invariant: a segment that was added is found by each of its texts; whether it has the vector of one
is seen where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serve.search.segment import digests_in
from serve.search.vectors import READ_ERRORS, Digests, Kind

Keys = NDArray[np.uint64]


class Holders:
    """Of the vectors of one space. 12 bytes for each text of each segment."""

    def __init__(self, segments: Iterable[Path]) -> None:
        self._numbers: dict[Path, int] = {}
        self._keys: Keys = np.empty(0, dtype=np.uint64)
        """Of all texts of all segments, sorted."""
        self._segments = np.empty(0, dtype=np.int32)
        """The number of the segment that each is of."""
        self.add(*segments)

    def add(self, *segments: Path) -> None:
        """Know segments too; those that cannot be read are left out."""
        keys, numbers = [self._keys], [self._segments]
        for segment in segments:
            if segment in self._numbers:
                continue
            with suppress(*READ_ERRORS):
                keys.append(_keys(digests_in(segment)))
                number = self._numbers[segment] = len(self._numbers)
                numbers.append(np.full(len(keys[-1]), number, dtype=np.int32))
        if len(keys) == 1:
            return
        together = np.concatenate(keys)
        order = np.argsort(together, kind="stable")
        self._keys = together[order]
        self._segments = np.concatenate(numbers)[order]

    def nth(self, digests: Digests, number: int) -> list[Path]:
        """The segments that are the first to have one of `digests`, for `number` 0; the second, for
        1; and so on. None has so many, where there are none."""
        keys = _keys(digests)
        at = np.searchsorted(self._keys, keys) + number
        there = at < np.searchsorted(self._keys, keys, side="right")
        segments = list(self._numbers)
        return [segments[each] for each in np.unique(self._segments[at[there]])]


def _keys(digests: Digests) -> Keys:
    """The first half of each. Raises ValueError for what are no digests."""
    if digests.dtype != np.dtype(Kind) or digests.ndim != 1:
        raise ValueError("no digests")
    return np.ascontiguousarray(digests).view(np.uint64)[::2].copy()
