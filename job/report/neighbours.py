"""The records that stand before and after a piece of evidence in its file.

Invariant: one table of results is in memory at a time and at most `BESIDE` records on either side
of each place are kept; what is found does not depend on how the results are cut or in which order
they come, and finds of parts merge to the find of the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from job.report.card import in_full
from job.report.evidence import QUOTES, LineOf, local

BESIDE = 2
"""Records shown before a piece, and after it."""
TEXT_CHARS = 300
COLUMNS = ["id", "source", "position", "time", "level", "text"]

Spot = tuple[str, int]
"""A source and the position of a record in it."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record beside a piece. `time` is in microseconds since 1970 UTC."""

    position: int
    record: str
    time: int | None
    level: str | None
    text: str


@dataclass(slots=True)
class Beside:
    """The nearest records before and after a place, each in the order of the file."""

    before: list[Neighbour] = field(default_factory=list)
    after: list[Neighbour] = field(default_factory=list)

    def wants(self, before: NDArray[Any], after: NDArray[Any]) -> bool:
        """Whether there may be a nearer record among those at these positions, in order."""
        nearer_before = len(before) > 0 and (
            len(self.before) < BESIDE or before[-1] > self.before[0].position
        )
        nearer_after = len(after) > 0 and (
            len(self.after) < BESIDE or after[0] < self.after[-1].position
        )
        return nearer_before or nearer_after

    def absorb(self, other: Beside) -> None:
        """Keep the nearest of what both know."""
        self.before = _in_order({*self.before, *other.before})[-BESIDE:]
        self.after = _in_order({*self.after, *other.after})[:BESIDE]


def quoted(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pieces of evidence that the cards quote."""
    for theme in in_full(report["themes"]):
        yield from theme["evidence"][:QUOTES]


def places(report: Mapping[str, Any]) -> set[Spot]:
    """Where the pieces stand that the cards quote."""
    return {(piece["source"], piece["position"]) for piece in quoted(report)}


def find_neighbours(tables: Iterable[pa.Table], wanted: Collection[Spot]) -> dict[Spot, Beside]:
    """What stands beside each of the places `wanted`; `tables` hold `COLUMNS` of results."""
    positions: dict[str, list[int]] = {}
    for source, position in wanted:
        positions.setdefault(source, []).append(position)
    found = {place: Beside() for place in wanted}
    for table in tables:
        for source in set(pc.unique(table["source"]).to_pylist()) & positions.keys():
            rows = table.select(COLUMNS).filter(pc.equal(table["source"], source))
            have = rows["position"].to_numpy()
            order = np.argsort(have, kind="stable")
            in_order = have[order]
            for position in positions[source]:
                start, end = (int(np.searchsorted(in_order, position, side)) for side in _SIDES)
                beside = found[source, position]
                if beside.wants(in_order[:start], in_order[end:]):
                    before, after = order[max(0, start - BESIDE) : start], order[end : end + BESIDE]
                    beside.absorb(Beside(_neighbours(rows, before), _neighbours(rows, after)))
    return found


def merge_neighbours(parts: Iterable[Mapping[Spot, Beside]]) -> dict[Spot, Beside]:
    """The find of all results from the finds of their parts."""
    merged: dict[Spot, Beside] = {}
    for part in parts:
        for place, beside in part.items():
            merged.setdefault(place, Beside()).absorb(beside)
    return merged


def fill_neighbours(
    report: Mapping[str, Any],
    found: Mapping[Spot, Beside],
    zone: ZoneInfo,
    line_of: LineOf | None = None,
) -> None:
    """Put what was found beside the pieces of `report`, in place."""
    for piece in quoted(report):
        beside = found[piece["source"], piece["position"]]
        piece["neighbours"] = {
            side: [_shown(near, piece["source"], zone, line_of) for near in getattr(beside, side)]
            for side in ("before", "after")
        }


_SIDES: tuple[Any, Any] = ("left", "right")


def _neighbours(rows: pa.Table, indices: NDArray[Any]) -> list[Neighbour]:
    part = rows.take(indices)
    part = part.set_column(COLUMNS.index("time"), "time", part["time"].cast(pa.int64()))
    return [
        Neighbour(row["position"], row["id"], row["time"], row["level"], _cut(row["text"]))
        for row in part.to_pylist()
    ]


def _in_order(neighbours: Iterable[Neighbour]) -> list[Neighbour]:
    return sorted(neighbours, key=lambda near: (near.position, near.record))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"


def _shown(near: Neighbour, source: str, zone: ZoneInfo, line_of: LineOf | None) -> dict[str, Any]:
    return {
        "record": near.record,
        "line": line_of(source, near.position) if line_of else None,
        "time": local(near.time, zone),
        "level": near.level,
        "text": near.text,
    }
