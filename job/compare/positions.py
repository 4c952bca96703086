"""Whether answers get worse towards the end of a pack, and from which position on. Pure.

For every position it is counted how many answers from there on are bad, less how many would be if
each pack had spread its bad answers evenly, in standard deviations; the position with the greatest
excess is where the fading begins. Chance is judged by spreading the bad answers of each pack anew,
two thousand times: that keeps what packs differ by (their kind, their length, a bad moment of the
provider) from looking like an effect of the position.

Invariant: packs that have no effect of the position are said to fade 1 time in 100 at most; the
same observations give the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from job.compare.agreement import share

ALPHA = 0.01
"""False alarms among packs in which the position has no effect."""
LEAST_FALL = 0.05
"""By so much fewer answers must be good, from the position on, for it to matter to anybody."""
_SPREADINGS = 1999
"""The smallest p value is then 1 in 2,000."""
_SEED = 20_260_314
_LEAST_SIDE = 8
"""Answers before a position, and from it on, for it to be tried: fewer have extremes by chance."""
_BINS = 5

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the answer to a record stood when it was first asked for: in which pack, at which
    position (from 1) of how many. `came`: there it came back, with nothing missing."""

    pack: int
    position: int
    size: int
    came: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer at its place; `good`: it came back there and says what the other side says."""

    place: Place
    good: bool


@dataclass(frozen=True, slots=True)
class Fade:
    """The position from which on fewest answers are good, of `longest` in the longest pack, and
    the shares of good ones before it and from it on; `p`: how probable so much is by chance."""

    position: int
    longest: int
    before: float
    after: float
    p: float

    @property
    def found(self) -> bool:
        """Whether it is more than chance, and enough to matter."""
        return self.p <= ALPHA and self.before - self.after >= LEAST_FALL

    def as_json(self) -> dict[str, Any]:
        """Numbers and shares."""
        return {
            "found": self.found,
            "from_position": self.position,
            "longest_pack": self.longest,
            "good_share_before": round(self.before, 4),
            "good_share_from": round(self.after, 4),
            "p": round(self.p, 4),
        }


def find_fade(seen: Sequence[Seen]) -> Fade | None:
    """Where answers begin to be worse, by chance or not (see `Fade.found`); None where nothing can
    be tried: no packs, or every answer good, or bad, alike."""
    packs = _packs(seen)
    longest = max((place.size for place in (s.place for s in seen)), default=0)
    total, expected, variance = np.zeros((3, longest + 2))
    for positions, bad in packs:
        # `tail[k]`: answers of the pack at position k and later.
        tail = _from_each(np.bincount(positions, minlength=longest + 2))
        size, wrong = len(positions), int(bad.sum())
        total += tail
        if 0 < wrong < size:
            expected += wrong * tail / size
            variance += wrong * (size - wrong) * tail * (size - tail) / (size**2 * (size - 1))
    tried = (
        (np.arange(longest + 2) >= 2)
        & (total >= _LEAST_SIDE)
        & (total[0] - total >= _LEAST_SIDE)
        & (variance > 0)
    )
    if not tried.any():
        return None
    found, spread = _excesses(packs, longest)
    deviation = np.sqrt(variance[tried])
    at_hand = (found[tried] - expected[tried]) / deviation
    by_chance = ((spread[:, tried] - expected[tried]) / deviation).max(axis=1)
    position = int(np.flatnonzero(tried)[np.argmax(at_hand)])
    # Equal sums may differ in their last bit.
    as_much = int((by_chance >= at_hand.max() - 1e-9).sum())
    before = [s.good for s in seen if s.place.position < position]
    after = [s.good for s in seen if s.place.position >= position]
    return Fade(
        position,
        longest,
        sum(before) / len(before),
        sum(after) / len(after),
        (1 + as_much) / (1 + _SPREADINGS),
    )


def _packs(seen: Sequence[Seen]) -> list[tuple[Counts, Counts]]:
    """The positions of each pack, and which of them are bad."""
    packs: dict[int, list[Seen]] = {}
    for one in seen:
        packs.setdefault(one.place.pack, []).append(one)
    return [
        (
            np.array([one.place.position for one in pack]),
            np.array([not one.good for one in pack], dtype=np.int64),
        )
        for _, pack in sorted(packs.items())
    ]


def _excesses(packs: Sequence[tuple[Counts, Counts]], longest: int) -> tuple[Counts, Counts]:
    """Bad answers from each position on: as they are, and as they would be in each spreading. Packs
    in which all answers are good, or bad, alike say nothing."""
    random = np.random.default_rng(_SEED)
    found = np.zeros(longest + 2, dtype=np.int64)
    spread = np.zeros((_SPREADINGS, longest + 2), dtype=np.int64)
    for positions, bad in packs:
        if 0 < bad.sum() < len(bad):
            found[positions] += bad
            spread[:, positions] += random.permuted(np.tile(bad, (_SPREADINGS, 1)), axis=1)
    return _from_each(found), _from_each(spread)


def _from_each(counts: Counts) -> Counts:
    """Sums from each position to the last."""
    sums: Counts = np.flip(np.cumsum(np.flip(counts, axis=-1), axis=-1), axis=-1)
    return sums


def by_position(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """How many answers are good at each position."""
    return [_row(group, position, position) for position, group in sorted(_grouped(seen).items())]


def by_bin(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """The same for ranges of positions with about as many answers each."""
    grouped = sorted(_grouped(seen).items())
    bins: list[list[Seen]] = []
    done = 0
    for _, group in grouped:
        if len(bins) <= done * _BINS // max(1, len(seen)):
            bins.append([])
        bins[-1] += group
        done += len(group)
    return [
        _row(group, min(s.place.position for s in group), max(s.place.position for s in group))
        for group in bins
    ]


def _grouped(seen: Sequence[Seen]) -> Mapping[int, list[Seen]]:
    groups: dict[int, list[Seen]] = {}
    for one in seen:
        groups.setdefault(one.place.position, []).append(one)
    return groups


def _row(group: Sequence[Seen], first: int, last: int) -> dict[str, Any]:
    good = sum(one.good for one in group)
    return {
        "from": first,
        "to": last,
        "of": len(group),
        "good": good,
        "share": share(good, len(group)),
        "came": sum(one.place.came for one in group),
    }
