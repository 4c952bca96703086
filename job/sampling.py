"""`--sample N`: which records, without holding them.

Invariant: the same N records of the same inputs in every run. Ids are hashes of source and
position, so the N smallest are a sample drawn by a fixed seed, exact in number.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import chain

from job.clean.cleaner import Cleaner, CleanSettings
from job.intake import clean_blocks
from job.read import Slice
from job.records import SliceCounts
from job.spread import spread


def sample_bound(
    slices: Sequence[Slice], cleaning: Mapping[str, CleanSettings], wanted: int
) -> str | None:
    """The greatest id of the sample; None if there are no more records than are wanted. Reads and
    cleans everything once, in parallel."""
    smallest: list[str] = []
    parts = ((part, cleaning[part.source]) for part in slices)
    for ids in spread(_smallest, parts, wanted):
        smallest = heapq.nsmallest(wanted + 1, chain(smallest, ids))
    return smallest[wanted - 1] if len(smallest) > wanted else None


def _smallest(slice_of: tuple[Slice, CleanSettings], wanted: int) -> list[str]:
    part, settings = slice_of
    cleaner = Cleaner(settings, SliceCounts(part.source, 0))
    ids = (record.id for block in clean_blocks(part, cleaner) for record in block)
    return heapq.nsmallest(wanted + 1, ids)
