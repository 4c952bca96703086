"""A share of the records, without holding them all.

Invariant: of records that say the same (and would be folded) one is drawn, and the same inputs give
the same records each time. Digests are hashes of what records say, so the smallest ones are a
sample drawn by a fixed seed in which each distinct record has the same chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from job.clean.cleaner import Cleaner, CleanSettings
from job.intake import clean_blocks
from job.read import Slice
from job.records import Record, SliceCounts
from job.spread import spread

LEAST = 50
"""Records that are drawn at least, where there are so many."""
MOST = 2000
"""At most: some 10 MB, and in single mode as many calls."""
COUNTED = 65_536
"""Distinct records that are counted one by one: half a megabyte of each slice. Beyond, their number
is estimated, within 1 %."""
_DIGITS = 16
"""Of a digest, as many as make a number of 64 bits."""

Digests = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The records, by digest. `distinct`: how many the inputs hold that do not say the same."""

    records: tuple[Record, ...]
    distinct: int


def draw(
    slices: Sequence[Slice],
    cleaning: Mapping[str, CleanSettings],
    share: float,
    sampled: str | None = None,
) -> Drawn:
    """A `share` (0 to 1) of the distinct records, within LEAST and MOST. Reads and cleans
    everything once, in parallel. `sampled`: the greatest id that a `--sample` keeps."""
    parts = ((part, cleaning[part.source]) for part in slices)
    lowest = _Lowest()
    for found in spread(_lowest_of_slice, parts, sampled):
        lowest.add(found.records, found.digests)
    distinct = lowest.distinct()
    return Drawn(tuple(lowest.records[: drawn_of(share, distinct)]), distinct)


def drawn_of(share: float, distinct: int) -> int:
    """How many of so many are drawn, where there are enough."""
    return min(max(round(share * distinct), LEAST), MOST)


@dataclass(slots=True)
class _Lowest:
    """Of the records so far, those of the smallest digests, one each, and more of the digests."""

    records: list[Record] = field(default_factory=list)
    digests: Digests = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def add(self, records: Iterable[Record], digests: Digests) -> None:
        """More records, and the digests of all that they were found among."""
        self.digests = np.unique(np.concatenate([self.digests, digests]))[:COUNTED]
        first: dict[str, Record] = {}
        for record in chain(self.records, records):
            held = first.setdefault(record.digest, record)
            if record.id < held.id:
                first[record.digest] = record
        self.records = nsmallest(MOST, first.values(), key=lambda record: record.digest)

    def distinct(self) -> int:
        """How many distinct records there are."""
        if len(self.digests) < COUNTED:
            return len(self.digests)
        # The digest that stands k-th says how densely they lie (k minimum values).
        return round((COUNTED - 1) / ((int(self.digests[-1]) + 1) / 2**64))


def _lowest_of_slice(slice_of: tuple[Slice, CleanSettings], sampled: str | None) -> _Lowest:
    part, settings = slice_of
    cleaner = Cleaner(settings, SliceCounts(part.source, 0), sampled)
    lowest = _Lowest()
    for block in clean_blocks(part, cleaner):
        numbers = [int(record.digest[:_DIGITS], 16) for record in block]
        lowest.add(block, np.array(numbers, dtype=np.uint64))
    return lowest
