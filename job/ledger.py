"""The account that must balance, recounted from what was written.

Invariant: `read = records + rejected + skipped` and `records = answered + recalled + folded +
review + failed + unasked`, every id once. Live counters are not used: a retried task counts twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from job.errors import LedgerError
from job.records import VIAS, SliceCounts
from job.spread import spread
from job.storage.place import Place
from job.write import count_rows, read_tables
from serve.ask.ask import CallCounts

IDS_AT_ONCE = 2_000_000
"""Ids compared by one task: some 50 MB."""

MONEY = ("usd", "cost", "currency", "unconfirmed")
"""What stands beside the counts of calls: of all commands of the run together, while the counts are
those of the last."""

_NUMBERS = ("read", "records", "rejected", "skipped", "folded", "unfolded", "bytes", "tokens")
_BY_NAME = ("kinds", "langs", "flags", "rejected_by", "skipped_by", "masked")


def read_manifests(folder: Place) -> dict[str, list[SliceCounts]]:
    """The counts that the slices left, by source."""
    held: dict[str, list[SliceCounts]] = {}
    for path in folder.glob("*.json"):
        counts = SliceCounts(**orjson.loads(path.read_bytes()))
        held.setdefault(counts.source, []).append(counts)
    return held


def sum_counts(source: str, manifests: Iterable[SliceCounts]) -> SliceCounts:
    """The counts of one file from those of its slices."""
    total = SliceCounts(source, 0)
    for counts in manifests:
        for name in _NUMBERS:
            setattr(total, name, getattr(total, name) + getattr(counts, name))
        for name in _BY_NAME:
            summed = Counter(getattr(total, name)) + Counter(getattr(counts, name))
            setattr(total, name, dict(summed))
        total.first = min(filter(None, (total.first, counts.first)), default=None)
        total.last = max(filter(None, (total.last, counts.last)), default=None)
    return total


def count_vias(results: Sequence[Place]) -> Counter[str]:
    """How the records of the result files ended. Raises LedgerError if an id stands twice."""
    vias: Counter[str] = Counter()
    twice = 0
    shares = max(1, math.ceil(count_rows(results) / IDS_AT_ONCE))
    for counts, doubled in spread(_count_share, range(shares), results, shares):
        vias.update(counts)
        twice += doubled
    if twice:
        raise LedgerError(f"{twice} records stand twice in the results; the output is damaged")
    return vias


def _count_share(share: int, results: Sequence[Place], shares: int) -> tuple[dict[str, int], int]:
    """How the records of one share of all ids ended, and how many of them stand twice."""
    vias: Counter[str] = Counter()
    ids: list[NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
    for table in read_tables(results, columns=["id", "via"]):
        numbers = _as_numbers(table["id"])
        own = numbers % np.uint64(shares) == share
        counts = pc.value_counts(table["via"].filter(pa.array(own)))
        vias.update({row["values"]: row["counts"] for row in counts.to_pylist()})
        ids.append(numbers[own])
    everyone = np.concatenate(ids)
    return dict(vias), len(everyone) - len(np.unique(everyone))


def _as_numbers(ids: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Record ids ("r" and 16 hex digits) as 8-byte numbers."""
    digits = "".join(ids.to_pylist()).replace("r", "")
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64)


def make_ledger(
    sources: list[tuple[dict[str, Any], SliceCounts]],
    vias: Counter[str],
    calls: CallCounts,
    money: Mapping[str, Any],
) -> dict[str, Any]:
    """ledger.json. `sources`: how each file was understood, and its counts; `money`: see
    `job.spend.spending.money_of`.

    Raises LedgerError where the two sides differ, naming both.
    """
    total = sum_counts("", [counts for _, counts in sources])
    ledger: dict[str, Any] = {
        name: getattr(total, name) for name in ("read", "records", "rejected", "skipped")
    }
    ledger |= {via: vias[via] for via in VIAS}
    ledger["calls"] = {
        "requests": calls.requests,
        "retries": calls.retries,
        "rate_limited": calls.rate_limited,
        "tokens_in": calls.tokens_in,
        "tokens_out": calls.tokens_out,
        **{name: money[name] for name in MONEY},
    }
    ledger["spend"] = {name: value for name, value in money.items() if name not in MONEY}
    ledger["masked"] = total.masked
    ledger["sources"] = [
        facts | {k: v for k, v in asdict(counts).items() if k != "slice"}
        for facts, counts in sources
    ]
    check(ledger)
    return ledger


def check(ledger: dict[str, Any]) -> None:
    """Raise LedgerError unless the ledger balances."""
    left, right = ledger["read"], ledger["records"] + ledger["rejected"] + ledger["skipped"]
    if left != right:
        raise LedgerError(f"read {left} but records + rejected + skipped are {right}")
    left, right = ledger["records"], sum(ledger[via] for via in VIAS)
    if left != right:
        raise LedgerError(f"{left} records but {right} results: records were lost or doubled")


def lines(ledger: dict[str, Any]) -> list[str]:
    """The two lines of the account, as they are printed."""
    parts = " + ".join(f"{ledger[via]:,} {via}" for via in VIAS)
    return [
        f"{ledger['read']:,} read = {ledger['records']:,} records"
        f" + {ledger['rejected']:,} rejected + {ledger['skipped']:,} skipped",
        f"{ledger['records']:,} records = {parts}",
    ]
