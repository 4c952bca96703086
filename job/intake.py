"""Slices -> records to ask: read, clean, fold, in one task per slice.

Invariant: whatever a slice holds is either handed on, or in one of the files the slice leaves
(folded members, rejections), or counted as skipped; its manifest says how many of each and is
written last. A task that is run again writes the same files again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.clean.cleaner import Cleaner, CleanSettings
from job.fold.folding import MEMBER_SCHEMA, Folded, Shards, fold, members_to_table, shard_of
from job.read import Slice, read_slice
from job.records import Record, Rejected, SliceCounts, records_to_table
from job.run_folder import RunFolder
from job.storage.place import Place
from job.write import appearing, write_json

BLOCK_RECORDS = 2048
"""Records handed on at once: about a megabyte."""
BLOCK_CHARACTERS = 4 << 20
"""Of their texts; reached only by long ones."""
CLAIMS_AHEAD = 2
"""Blocks whose claims are on their way while one more is read: some 100 ms, where an actor on a
busy machine needs a few."""
MEMBER_ROWS = 1024
"""Folded records of a share that are written at once: rows written by the dozen cost five times as
much."""
MEMBER_CHARACTERS = 16 << 20
"""Of the texts of all folded records that wait to be written."""
SHARES = 8
"""Files among which the folded records of a slice are spread by digest, so that joining them to
their answers takes memory for an eighth of them at a time."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What every reading task knows. `cleaning`: the settings of each source; `sampled`: the
    greatest id that a `--sample` keeps, None for all; `board` is an actor handle."""

    slices: Sequence[Slice]
    cleaning: Mapping[str, CleanSettings]
    folder: RunFolder
    shards: Shards
    board: Any
    sampled: str | None = None

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> Iterator[pa.Table]:
        """Blocks of RECORD_SCHEMA for the slices whose numbers are in `batch["id"]`."""
        for number in batch["id"]:
            yield from self._slice(int(number))

    def _slice(self, number: int) -> Iterator[pa.Table]:
        part = self.slices[number]
        counts = SliceCounts(part.source, number, bytes=part.size)
        cleaner = Cleaner(self.cleaning[part.source], counts, self.sampled)
        with ExitStack() as stack:
            aside = _Aside(self.folder, f"{number:06d}", stack)
            for folded in self._folded(clean_blocks(part, cleaner, aside.reject)):
                aside.put_members(folded.members)
                counts.folded += len(folded.members)
                counts.unfolded += folded.unfolded
                if folded.asked:
                    yield records_to_table(folded.asked)
            aside.close()
        write_json(self.folder.manifests / f"{number:06d}.json", asdict(counts))
        self.board.slice_read.remote(counts)

    def _folded(self, blocks: Iterator[list[Record]]) -> Iterator[Folded]:
        """The blocks, folded. The claims of a block are on their way while the next is read."""
        waiting: deque[tuple[list[Record], Callable[[], list[str | None]]]] = deque()
        for block in blocks:
            waiting.append((block, self.shards.claim(block)))
            if len(waiting) > CLAIMS_AHEAD:
                records, first = waiting.popleft()
                yield fold(records, first())
        for records, first in waiting:
            yield fold(records, first())


def clean_blocks(part: Slice, cleaner: Cleaner, reject: Any = None) -> Iterator[list[Record]]:
    """The records of a slice in blocks; what is rejected goes to `reject`, where one is given."""
    block: list[Record] = []
    characters = 0
    for raw in read_slice(part):
        cleaned = cleaner.clean(raw)
        if isinstance(cleaned, Record):
            block.append(cleaned)
            characters += len(cleaned.text)
            if len(block) == BLOCK_RECORDS or characters > BLOCK_CHARACTERS:
                yield block
                block, characters = [], 0
        elif isinstance(cleaned, Rejected) and reject is not None:
            reject(cleaned)
    if block:
        yield block


@dataclass(slots=True)
class _Aside:
    """The files a slice leaves beside the records it hands on; they appear when it is done."""

    folder: RunFolder
    name: str
    stack: ExitStack
    _rejected: IO[bytes] | None = None
    _members: dict[int, list[tuple[Record, str]]] = field(default_factory=dict)
    _characters: int = 0
    _writers: dict[int, pq.ParquetWriter] = field(default_factory=dict)

    def reject(self, row: Rejected) -> None:
        if self._rejected is None:
            self._rejected = self._appearing(self.folder.rejected / f"{self.name}.jsonl")
        self._rejected.write(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE))

    def put_members(self, members: Sequence[tuple[Record, str]]) -> None:
        for member in members:
            share = shard_of(member[0].digest, SHARES)
            waiting = self._members.setdefault(share, [])
            waiting.append(member)
            self._characters += len(member[0].text)
            if len(waiting) == MEMBER_ROWS:
                self._write_members(share)
            elif self._characters > MEMBER_CHARACTERS:
                self._write_all_members()

    def close(self) -> None:
        self._write_all_members()
        for writer in self._writers.values():
            writer.close()

    def _write_all_members(self) -> None:
        for share in self._members:
            self._write_members(share)

    def _write_members(self, share: int) -> None:
        waiting = self._members[share]
        if waiting:
            if share not in self._writers:
                file = self.folder.members / str(share) / f"{self.name}.parquet"
                self._writers[share] = pq.ParquetWriter(self._appearing(file), MEMBER_SCHEMA)
            self._writers[share].write_table(members_to_table(waiting))
            self._characters -= sum(len(record.text) for record, _ in waiting)
            waiting.clear()

    def _appearing(self, place: Place) -> IO[bytes]:
        return self.stack.enter_context(appearing(place))
