"""Ids of themes: from their content, and the same from day to day. Pure.

Invariant: no two themes of a run have the same id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from job.themes.space import Vectors

CONTINUES = 0.6
"""Least link between a theme and the earlier one whose id it takes. Halves of the wordings of one
cause reach it in 96 of 100 cases, causes near each other in some 20, others in less than one; and
a nearer theme goes first."""


class Comparable(Protocol):
    """What is compared of a theme of this run or of an earlier one."""

    @property
    def id(self) -> str: ...
    @property
    def positive(self) -> bool: ...
    @property
    def centroid(self) -> Vectors: ...
    @property
    def cohesion(self) -> float: ...


def theme_id(content: str) -> str:
    """ "t-" and ten hexadecimal digits."""
    return f"t-{hashlib.sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def continue_ids(themes: Sequence[Comparable], earlier: Sequence[Comparable]) -> dict[str, str]:
    """The id of each of `themes` in this run: that of the earlier theme it continues, or its own.

    The pair with the highest link comes first, each theme is in at most one pair, praise continues
    only praise, and a link below `CONTINUES` makes no pair. Both sides must be of the same space.
    """
    ids = {theme.id: theme.id for theme in themes}
    for positive in (False, True):
        ours = [theme for theme in themes if theme.positive == positive]
        theirs = [theme for theme in earlier if theme.positive == positive]
        for row, column in _pairs(ours, theirs):
            ids[ours[row].id] = theirs[column].id
    return _without_clashes(ids)


def _pairs(themes: Sequence[Comparable], earlier: Sequence[Comparable]) -> list[tuple[int, int]]:
    if not themes or not earlier:
        return []
    links = _links(themes, earlier)
    pairs = []
    for _ in range(min(links.shape)):
        row, column = divmod(int(np.argmax(links)), len(earlier))
        if links[row, column] < CONTINUES:
            break
        pairs.append((row, column))
        links[row] = -np.inf
        links[:, column] = -np.inf
    return pairs


def _links(themes: Sequence[Comparable], earlier: Sequence[Comparable]) -> Vectors:
    """Links as in `linkage.py`."""
    ours, theirs = (np.stack([t.centroid for t in side]) for side in (themes, earlier))
    scales = [np.sqrt(np.array([t.cohesion for t in side])) for side in (themes, earlier)]
    return ((ours @ theirs.T) / np.outer(scales[0], scales[1])).astype(np.float32)


def _without_clashes(ids: dict[str, str]) -> dict[str, str]:
    """`ids` with a fresh id where a theme's own one has gone to another theme."""
    taken = {new for own, new in ids.items() if own != new}
    for own, new in ids.items():
        if own == new and own in taken:
            fresh = theme_id(own)
            while fresh in taken or fresh in ids:
                fresh = theme_id(fresh)
            ids[own] = fresh
            taken.add(fresh)
    return ids
