"""Slices -> records to ask: read, clean, fold, in one task per slice.

Invariant: whatever a slice holds is either handed on, or in one of the files the slice leaves
(folded members, rejections), or counted as skipped; its manifest says how many of each and is
written last. A task that is run again writes the same files again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.clean import Cleaner, CleanSettings
from job.fold import MEMBER_SCHEMA, SHARDS, Folded, fold, members_to_table, shard_of
from job.read.slices import Slice, read_slice
from job.records import Record, Rejected, SliceCounts, records_to_table
from job.run_folder import RunFolder
from job.write import appearing, write_json

BLOCK_RECORDS = 2048
"""Records handed on at once: about a megabyte."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What every reading task knows. `cleaning`: the settings of each source; `sampled`: the
    greatest id that a `--sample` keeps, None for all; `shards` and `board` are actor handles."""

    slices: Sequence[Slice]
    cleaning: dict[str, CleanSettings]
    folder: RunFolder
    shards: Sequence[Any]
    board: Any
    sampled: str | None = None

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> Iterator[pa.Table]:
        """Blocks of RECORD_SCHEMA for the slices whose numbers are in `batch["id"]`."""
        for number in batch["id"]:
            yield from self._slice(int(number))

    def _slice(self, number: int) -> Iterator[pa.Table]:
        cut = self.slices[number]
        cleaner = Cleaner(self.cleaning[cut.source], SliceCounts(cut.source, number))
        with ExitStack() as stack:
            aside = _Aside(self.folder, f"{number:06d}", stack)
            for block in self._blocks(cleaner, read_slice(cut), aside):
                folded = fold(block, self.shards)
                aside.put_members(folded.members)
                cleaner.counts.folded += len(folded.members)
                cleaner.counts.unfolded += folded.unfolded
                yield records_to_table(folded.asked)
        write_json(self.folder.manifests / f"{number:06d}.json", asdict(cleaner.counts))
        self.board.slice_read.remote(cleaner.counts)
