"""Records that say the same -> one that stands for them.

Invariant: for each digest one id is the first, for the whole run: a record that is claimed again
(a retried task) meets itself and is asked, not folded into itself. What a shard cannot hold is
passed on unfolded and counted: to ask twice costs a call, to lose a record is not possible here.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import ray

from job.records import RECORD_SCHEMA, Record

SHARDS = 2
"""Actors among which the digests are spread by their first hex digits: each takes a second of CPU
time to start, and then 2 microseconds for a claim."""
SLICES_FOR_ONE = 4
"""Up to so many slices are read by few tasks at once, which one actor keeps up with."""
CAPACITY = 1_600_000
"""Digests that all shards together remember."""
DIGEST_BYTES = 16
ID_BYTES = 8
"""Of an id: those its hex digits stand for."""

_ROOM = 1.3
"""Slots for each digest that is remembered; with less of them free, finding one takes long."""

MEMBER_SCHEMA = RECORD_SCHEMA.append(pa.field("represented_by", pa.string(), nullable=False))
"""A folded record and the id of the one that stands for it."""


class Claims:
    """The ids that came first, by digest: a table of fixed size (25 bytes a slot, so 52 MB for
    all digests), in which a digest lies in the first free slot from the one that it names."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._left = capacity
        self._slots = int(capacity * _ROOM) + 1
        self._used = bytearray(self._slots)
        self._high, self._low, self._ids = (array("Q", bytes(8 * self._slots)) for _ in range(3))

    def claim(self, digests: bytes, ids: bytes) -> tuple[bytes, bytes]:
        """For each record the id that stands for it (its own, if it came first), and a byte that
        is 0 where there is none: the shard is full and had never seen the digest. `digests` and
        `ids` are `DIGEST_BYTES` and `ID_BYTES` for each record."""
        first, held = array("Q"), bytearray()
        halves = struct.iter_unpack(">QQ", digests)
        for (high, low), (record_id,) in zip(halves, struct.iter_unpack(">Q", ids), strict=True):
            slot = self._slot_of(high, low)
            if not self._used[slot] and self._left:
                self._left -= 1
                self._used[slot] = 1
                self._high[slot], self._low[slot], self._ids[slot] = high, low, record_id
            held.append(self._used[slot])
            first.append(self._ids[slot])
        return struct.pack(f">{len(first)}Q", *first), bytes(held)

    def _slot_of(self, high: int, low: int) -> int:
        """Where the digest lies, or would: some slot is always free."""
        slot = low % self._slots
        while self._used[slot] and (self._low[slot] != low or self._high[slot] != high):
            slot = (slot + 1) % self._slots
        return slot


class FoldShard:
    """Hosts the claims to one share of the digests."""

    def __init__(self, capacity: int) -> None:
        self._claims = Claims(capacity)

    def claim(self, digests: bytes, ids: bytes) -> tuple[bytes, bytes]:
        """See `Claims.claim`."""
        return self._claims.claim(digests, ids)


class Shards(Protocol):
    """Where digests are claimed."""

    def claim(self, records: Sequence[Record]) -> Callable[[], list[str | None]]:
        """Begin to claim the digests of `records`. Called, the result waits for the ids of those
        who came first: for each record its own or another's, None where a shard was full."""
        ...


@dataclass(frozen=True, slots=True)
class ActorShards:
    """Shards that are actors, which all readers share."""

    actors: Sequence[Any]

    def claim(self, records: Sequence[Record]) -> Callable[[], list[str | None]]:
        """See `Shards.claim`; every shard is asked at once, and once for all records."""
        shares: list[list[int]] = [[] for _ in self.actors]
        for index, record in enumerate(records):
            shares[shard_of(record.digest, len(shares))].append(index)
        asked = [
            (share, actor.claim.remote(*claimed([records[index] for index in share])))
            for actor, share in zip(self.actors, shares, strict=True)
            if share
        ]

        def held() -> list[str | None]:
            first: list[str | None] = [None] * len(records)
            for (share, _), reply in zip(asked, ray.get([r for _, r in asked]), strict=True):
                for index, stands in zip(share, came_first(*reply), strict=True):
                    first[index] = stands
            return first

        return held


def start_shards(slices: int) -> ActorShards:
    """The actors that remember who came first in so many `slices`; they take no CPU."""
    count = 1 if slices <= SLICES_FOR_ONE else SHARDS
    shard = ray.remote(FoldShard).options(num_cpus=0)
    return ActorShards([shard.remote(CAPACITY // count) for _ in range(count)])


def claimed(records: Sequence[Record]) -> tuple[bytes, bytes]:
    """Digests and ids of records, as they are claimed."""
    digests = bytes.fromhex("".join([record.digest for record in records]))
    return digests, bytes.fromhex("".join([record.id[1:] for record in records]))


def came_first(ids: bytes, held: bytes) -> list[str | None]:
    """What `Claims.claim` says, as the ids of records."""
    digits = ids.hex()
    width = 2 * ID_BYTES
    return [
        f"r{digits[width * n : width * (n + 1)]}" if there else None for n, there in enumerate(held)
    ]


def shard_of(digest: str, shards: int) -> int:
    """Which shard a digest belongs to."""
    return int(digest[:4], 16) % shards


@dataclass(slots=True)
class Folded:
    """A block after folding: those to ask, and the others with who stands for each."""

    asked: list[Record]
    members: list[tuple[Record, str]]
    unfolded: int


def fold(records: Sequence[Record], first: Sequence[str | None]) -> Folded:
    """Tell those to ask from those another stands for. `first`: for each who came first."""
    folded = Folded([], [], 0)
    for record, stands in zip(records, first, strict=True):
        folded.unfolded += stands is None
        if stands is None or stands == record.id:
            folded.asked.append(record)
        else:
            folded.members.append((record, stands))
    return folded


def members_to_table(members: Sequence[tuple[Record, str]]) -> pa.Table:
    """Members as one table of `MEMBER_SCHEMA`."""
    columns: dict[str, list[Any]] = {
        name: [getattr(record, name) for record, _ in members] for name in RECORD_SCHEMA.names
    }
    columns["represented_by"] = [first for _, first in members]
    return pa.table(columns, schema=MEMBER_SCHEMA)
