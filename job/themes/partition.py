"""Places in the theme space to groups.

What all issues of a day share, their trade and its words, is taken out first, or a shop's "refund
late" and "charged twice" are too alike to be told apart.

Invariant: every row is in exactly one group. All rows are compared each with each, so their number
must be bounded by the caller (`issues.SAMPLE`: 4,000 rows take 64 MB of similarities).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from job.themes.linkage import agglomerate, cohesion
from job.themes.space import Vectors, unit_rows

JOIN = 0.4
"""Least link between groups that are joined (see `linkage.py`): two fifths as alike as each is
within itself. From 0.36 to 0.44 it hardly matters on wordings left out."""
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


def partition(places: Vectors, prior: float) -> list[NDArray[np.intp]]:
    """The rows of `places` as groups, each in ascending order."""
    owners = agglomerate(places @ places.T, prior, JOIN)
    return [np.flatnonzero(owners == owner) for owner in np.unique(owners)]
