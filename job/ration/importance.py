"""Which records matter most, for a run that may not get round to all of them. Pure.

Invariant: the order depends on what a record says alone, never on where it stands; within a class
it is that of a hash, so what is left out is drawn from every file alike, and each run of the same
inputs leaves out the same.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum

import numpy as np
import pyarrow as pa

from job.extractive import analyse
from job.records import Record, table_to_records

RANK = "rank"
"""The column of `with_ranks`."""
ERROR_LEVELS = ("error", "critical")

CHANCE_BITS = 44
"""The lowest bits of a rank: above them stand those of the class and, in it, of rating or level."""
_STEP_BITS = 12
_MIDDLE_RATING = 3.0
"""Of five: what feedback without a rating counts as."""
_STEPS_A_POINT = 10
"""A rating counts to a tenth."""
_PART = 1024
"""Records of a block that are held as such at once."""


class Importance(IntEnum):
    """What a record is, from the most to the least important."""

    ERROR = 0
    """An entry at level error or critical, or one at another level that tells of a failure by the
    rules of the built-in analyst."""
    FEEDBACK = 1
    CONVERSATION = 2
    ORDINARY = 3
    """Any other entry of an operation log."""


def importance(record: Record) -> Importance:
    """The class of a record."""
    if record.level in ERROR_LEVELS:
        return Importance.ERROR
    if record.kind == "feedback":
        return Importance.FEEDBACK
    if record.kind == "conversation":
        return Importance.CONVERSATION
    # The language is that of a suggestion nobody reads here.
    tells_of_failure = analyse(record, "en").outcome == "problem"
    return Importance.ERROR if tells_of_failure else Importance.ORDINARY


def rank_of(record: Record) -> int:
    """Where a record stands among all, the smallest first: by class, in it by rating (feedback) or
    warnings first (entries), then by a hash of what it says."""
    kind = importance(record)
    text = record.digest or record.id
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    chance = int.from_bytes(digest) >> (64 - CHANCE_BITS)
    return (((kind << _STEP_BITS) | _step(record, kind)) << CHANCE_BITS) | chance


def class_of(rank: int) -> Importance:
    """The class in a rank."""
    return Importance(rank >> (_STEP_BITS + CHANCE_BITS))


def _step(record: Record, kind: Importance) -> int:
    """Where in its class a record stands, before chance decides."""
    if kind is Importance.ORDINARY:
        return 0 if record.level == "warning" else 1
    if kind is not Importance.FEEDBACK:
        return 0
    rating = _MIDDLE_RATING if record.rating is None else record.rating
    half = 1 << (_STEP_BITS - 1)
    return half + max(-half, min(half - 1, round(rating * _STEPS_A_POINT)))


def with_ranks(block: pa.Table) -> pa.Table:
    """A block of RECORD_SCHEMA with the rank of each record in a column of its own."""
    parts = (block.slice(start, _PART) for start in range(0, block.num_rows, _PART))
    ranks = np.fromiter(
        (rank_of(record) for part in parts for record in table_to_records(part)), np.int64
    )
    return block.append_column(RANK, pa.array(ranks))


def ranks_in(block: pa.Table) -> list[int] | None:
    """The ranks that `with_ranks` put into a block; None where it did not."""
    return block[RANK].to_pylist() if RANK in block.column_names else None
