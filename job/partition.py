"""Places in the theme space to groups, however many there are.

What all issues of a day share, their trade and its words, is taken out first, or a shop's "refund
late" and "charged twice" are too alike to be told apart.

Invariant: at most `EXACT` rows are ever compared each with each, and memory is bounded by that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from job.linkage import agglomerate, cohesion
from job.theme_space import Vectors, unit_rows

JOIN = 0.4
"""Least link between groups that are joined (see `linkage.py`): two fifths as alike as each is
within itself. From 0.36 to 0.44 it hardly matters on wordings left out."""
EXACT = 5_000
"""Rows compared each with each: 100 MB of similarities."""

_LEAST_TYPICAL = 0.2
"""Share of rows that may lack what counts as common. A shop's rows all have its words; where one
cause makes up most of a day the others lack it, and so it stays (up to four rows in five)."""
_MOST_COMMON = 0.3
"""Most that is taken out, as a length; rows of one trade have 0.2 to 0.3 in common, wordings of a
single cause 0.45."""
_FEW = 20
"""Rows of which half is taken out: what few rows have in common may be chance."""


def without_common(places: Vectors, languages: Sequence[str]) -> Vectors:
    """`places` without what nearly all of one language have in common. By language, since the words
    of a trade have in each a direction of their own."""
    centred = places.copy()
    language = np.array(languages)
    for some in np.unique(language):
        rows = places[language == some]
        total = rows.sum(axis=0)
        # How far each row goes in the direction of all the others.
        towards = np.einsum("ij,ij->i", rows, unit_rows(total - rows))
        common = np.clip(np.quantile(towards, _LEAST_TYPICAL), 0.0, _MOST_COMMON)
        share = np.float32(common * len(rows) / (len(rows) + _FEW))
        centred[language == some] = rows - share * unit_rows(total[None])
    return unit_rows(centred)


def shape(places: Vectors, prior: float) -> tuple[Vectors, float]:
    """Centroid and cohesion of a group whose rows, of length 1, are `places`."""
    size = len(places)
    total = places.sum(axis=0)
    # The sum over ordered pairs is that over all pairs less one a row.
    inner = float(total @ total) - size
    return total / np.float32(size), cohesion(size, inner, prior)


def partition(places: Vectors, counts: NDArray[np.int64], prior: float) -> list[NDArray[np.intp]]:
    """The rows of `places` as groups, each in ascending order.

    The `EXACT` most frequent are compared each with each; every other row joins the group with
    which it has the highest link, or else waits for a next round of the same with what is left.
    """
    groups: list[list[int]] = []
    left = np.arange(len(places))
    while left.size:
        frequent = left[np.argsort(-counts[left], kind="stable")]
        exact = np.sort(frequent[:EXACT])
        owners = agglomerate(places[exact] @ places[exact].T, prior, JOIN)
        found: dict[int, list[int]] = {}
        for row, owner in zip(exact.tolist(), owners.tolist(), strict=True):
            found.setdefault(owner, []).append(row)
        fresh = list(found.values())
        left = _assign(np.sort(frequent[EXACT:]), fresh, places, prior)
        groups += fresh
    return [np.array(sorted(group)) for group in groups]


def _assign(
    rows: NDArray[np.intp], groups: list[list[int]], places: Vectors, prior: float
) -> NDArray[np.intp]:
    """Add each of `rows` to the group it has the highest link with; return those without one."""
    shapes = [shape(places[group], prior) for group in groups]
    centroids = np.stack([centroid for centroid, _ in shapes])
    scale = np.sqrt([within * cohesion(1, 0.0, prior) for _, within in shapes])
    left = [rows[:0]]
    for start in range(0, len(rows), EXACT):
        some = rows[start : start + EXACT]
        links = (places[some] @ centroids.T) / scale
        nearest = np.argmax(links, axis=1)
        joins = links[np.arange(len(some)), nearest] >= JOIN
        for row, group in zip(some[joins].tolist(), nearest[joins].tolist(), strict=True):
            groups[group].append(row)
        left.append(some[~joins])
    return np.concatenate(left)
