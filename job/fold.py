"""Records that say the same -> one that stands for them.

Invariant: for each digest one id is the first, for the whole run: a record that is claimed again
(a retried task) meets itself and is asked, not folded into itself. What a shard cannot hold is
passed on unfolded and counted: to ask twice costs a call, to lose a record is not possible here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import ray

from job.records import RECORD_SCHEMA, Record

SHARDS = 4
"""Actors among which the digests are spread by their first hex digit."""
CAPACITY = 400_000
"""Digests that one shard remembers: about 60 MB."""

MEMBER_SCHEMA = RECORD_SCHEMA.append(pa.field("represented_by", pa.string(), nullable=False))
"""A folded record and the id of the one that stands for it."""


@dataclass(slots=True)
class Claims:
    """The ids that came first, by digest. Digests and ids are held as bytes, a third of the size
    of the strings."""

    capacity: int = CAPACITY
    _first: dict[bytes, bytes] = field(default_factory=dict)

    def claim(self, digests: Sequence[bytes], ids: Sequence[bytes]) -> list[bytes | None]:
        """For each record the id that stands for it (its own, if it came first); None if the
        shard is full and had never seen the digest."""
        first: list[bytes | None] = []
        for digest, record_id in zip(digests, ids, strict=True):
            held = self._first.get(digest)
            if held is None and len(self._first) < self.capacity:
                held = self._first[digest] = record_id
            first.append(held)
        return first


class FoldShard:
    """Hosts the claims to one share of the digests."""

    def __init__(self, capacity: int) -> None:
        self._claims = Claims(capacity)

    def claim(self, digests: Sequence[bytes], ids: Sequence[bytes]) -> list[bytes | None]:
        """See `Claims.claim`."""
        return self._claims.claim(digests, ids)


def start_shards(count: int = SHARDS, capacity: int = CAPACITY) -> Sequence[Any]:
    """The actors that remember who came first; they take no CPU."""
    shard = ray.remote(FoldShard).options(num_cpus=0)
    return [shard.remote(capacity) for _ in range(count)]


def shard_of(digest: str, shards: int) -> int:
    """Which shard a digest belongs to."""
    return int(digest[:4], 16) % shards


@dataclass(slots=True)
class Folded:
    """A block after folding: those to ask, and the others with who stands for each."""

    asked: list[Record]
    members: list[tuple[Record, str]]
    unfolded: int


def fold(records: Sequence[Record], shards: Sequence[Any]) -> Folded:
    """Claim the digests of `records` at the shards, all at once."""
    claims: list[list[int]] = [[] for _ in shards]
    for index, record in enumerate(records):
        claims[shard_of(record.digest, len(shards))].append(index)
    replies = [
        shard.claim.remote(
            [records[i].digest.encode() for i in indices],
            [records[i].id.encode() for i in indices],
        )
        for shard, indices in zip(shards, claims, strict=True)
    ]
    first: dict[int, bytes | None] = {}
    for indices, held in zip(claims, ray.get(replies), strict=True):
        first.update(zip(indices, held, strict=True))
    folded = Folded([], [], 0)
    for index, record in enumerate(records):
        held = first[index]
        if held is None:
            folded.unfolded += 1
        if held is None or held.decode() == record.id:
            folded.asked.append(record)
        else:
            folded.members.append((record, held.decode()))
    return folded


def members_to_table(members: Sequence[tuple[Record, str]]) -> pa.Table:
    """Members as one table of `MEMBER_SCHEMA`."""
    columns: dict[str, list[Any]] = {
        name: [getattr(record, name) for record, _ in members] for name in RECORD_SCHEMA.names
    }
    columns["represented_by"] = [first for _, first in members]
    return pa.table(columns, schema=MEMBER_SCHEMA)
