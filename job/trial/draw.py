"""A share of the records, without holding them all.

Invariant: of records that say the same (and would be folded) one is drawn, and the same inputs give
the same records each time. Digests are hashes of what records say, so the smallest ones are a
sample drawn by a fixed seed in which each distinct record has the same chance.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from job.clean.cleaner import Cleaner, CleanSettings
from job.intake import clean_blocks
from job.read import Slice
from job.records import Record, SliceCounts
from job.spread import spread

LEAST = 50
"""Records that are drawn at least, where there are so many."""
MOST = 2000
"""At most: some 10 MB, and in single mode as many calls."""
_DIGEST_BITS = 128


@dataclass(frozen=True, slots=True)
class Drawn:
    """The records, by digest. `distinct`: how many the inputs hold that do not say the same; an
    estimate, within some 5 %, where there are more than MOST."""

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
    lowest: list[Record] = []
    for records in spread(_lowest_of_slice, parts, sampled):
        lowest = _lowest([*lowest, *records])
    distinct = len(lowest)
    if distinct == MOST:
        # The digest that stands k-th says how densely they lie (k minimum values).
        distinct = round((MOST - 1) / ((int(lowest[-1].digest, 16) + 1) / 2**_DIGEST_BITS))
    wanted = min(max(round(share * distinct), LEAST), MOST)
    return Drawn(tuple(lowest[:wanted]), distinct)


def _lowest_of_slice(slice_of: tuple[Slice, CleanSettings], sampled: str | None) -> list[Record]:
    part, settings = slice_of
    cleaner = Cleaner(settings, SliceCounts(part.source, 0), sampled)
    lowest: list[Record] = []
    for block in clean_blocks(part, cleaner):
        lowest = _lowest([*lowest, *block])
    return lowest


def _lowest(records: Iterable[Record]) -> list[Record]:
    """Those of the MOST smallest digests, one each: the one with the smallest id."""
    first: dict[str, Record] = {}
    for record in records:
        held = first.setdefault(record.digest, record)
        if record.id < held.id:
            first[record.digest] = record
    return heapq.nsmallest(MOST, first.values(), key=lambda record: record.digest)
