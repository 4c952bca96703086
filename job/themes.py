"""Issues to themes: groups that share a cause, with ids that stay the same from day to day.

Grouping looks at distinct texts (event, cause, praised or not), in the order of their content, and
never at the order in which they arrived or at how often they occurred; only the choice of what is
grouped first when there are too many, and of the text that stands for a theme, follow frequency.
What stands alone is a theme of its own.

Invariant: each text is in exactly one theme, praise and problems are never in one, and a theme's id
follows from its texts alone, unless it continues a theme of an earlier run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from job.linkage import agglomerate, cohesion
from job.theme_space import Encode, ThemeSpace, Vectors

JOIN = 0.5
"""Least link between groups that are joined (see `linkage.py`): half as alike as each is within
itself. Between 0.42 and 0.52 it hardly matters on wordings left out."""
EXACT = 5_000
"""Texts compared each with each: 100 MB of similarities."""


class ThemeText(NamedTuple):
    """What of an issue decides its theme. `positive`: it says what was praised."""

    event: str
    cause: str | None
    positive: bool


@dataclass(frozen=True, slots=True)
class ThemeGroup:
    """A theme.

    `members` are indices of its texts, `representative` the one most like all of it, each text
    counted as often as it occurred. `count` is the number of issues. `centroid` is the mean of its
    texts' places in the space and `cohesion` how alike they are; what `continue_ids` compares.
    """

    id: str
    members: tuple[int, ...]
    representative: int
    count: int
    positive: bool
    centroid: Vectors
    cohesion: float


class EarlierTheme(Protocol):
    """What must be known of a theme of an earlier run (a ThemeGroup is one)."""

    @property
    def id(self) -> str: ...
    @property
    def positive(self) -> bool: ...
    @property
    def centroid(self) -> Vectors: ...
    @property
    def cohesion(self) -> float: ...


def group_texts(
    texts: Sequence[ThemeText], counts: Sequence[int], space: ThemeSpace, encode: Encode
) -> list[ThemeGroup]:
    """Themes of distinct `texts`, each of which occurred `counts` times; the theme with most issues
    first, equal ones by id. `encode` must be of the model of `space`; it sees each distinct event
    and cause of a kind once."""
    groups: list[ThemeGroup] = []
    for positive in (False, True):
        rows = [i for i, text in enumerate(texts) if text.positive == positive]
        if rows:
            rows.sort(key=lambda i: _content(texts[i]))
            some = _Some(
                rows,
                [texts[i] for i in rows],
                np.array([counts[i] for i in rows]),
                _places([texts[i] for i in rows], space, encode),
                space.prior(positive),
            )
            groups += some.themes()
    return sorted(groups, key=lambda group: (-group.count, group.id))


def _places(texts: Sequence[ThemeText], space: ThemeSpace, encode: Encode) -> Vectors:
    events = [text.event for text in texts]
    if texts[0].positive:
        return space.place_praise(encode(events))
    # Of a problem without a cause the event stands for it.
    vectors = encode(events + [text.cause or text.event for text in texts])
    return space.place_problems(vectors[: len(texts)], vectors[len(texts) :])


def continue_ids(
    groups: Sequence[ThemeGroup], earlier: Sequence[EarlierTheme]
) -> Mapping[str, str]:
    """For each theme its id in this run: that of the earlier theme it continues, else its own.

    The pair with the highest link comes first, each theme is in at most one pair, and a link below
    `JOIN` makes none. `earlier` must come from a run with the same space.
    """
    ids = {group.id: group.id for group in groups}
    if groups and earlier:
        links = _links(groups, earlier)
        taken_rows: set[int] = set()
        taken_columns: set[int] = set()
        for flat in np.argsort(-links, axis=None, kind="stable"):
            row, column = divmod(int(flat), len(earlier))
            if links[row, column] < JOIN:
                break
            if row not in taken_rows and column not in taken_columns:
                taken_rows.add(row)
                taken_columns.add(column)
                ids[groups[row].id] = earlier[column].id
    return _without_clashes(ids)


def _links(groups: Sequence[ThemeGroup], earlier: Sequence[EarlierTheme]) -> Vectors:
    """Links between the themes of two runs; those of praise with problems are minus infinity."""
    centroids = [np.stack([theme.centroid for theme in side]) for side in (groups, earlier)]
    scale = [np.sqrt([theme.cohesion for theme in side]) for side in (groups, earlier)]
    links = (centroids[0] @ centroids[1].T) / np.outer(scale[0], scale[1])
    positive = [np.array([theme.positive for theme in side]) for side in (groups, earlier)]
    links[positive[0][:, None] != positive[1][None]] = -np.inf
    out: Vectors = links.astype(np.float32)
    return out


def _without_clashes(ids: dict[str, str]) -> dict[str, str]:
    """`ids` with a new id where a theme's own one has gone to another theme."""
    inherited = {new for own, new in ids.items() if own != new}
    for own, new in ids.items():
        if own == new and new in inherited:
            while ids[own] in inherited:
                ids[own] = _hashed(ids[own])
    return ids


@dataclass(frozen=True, slots=True)
class _Some:
    """Texts of one polarity in the order of their content. `rows` are their indices outside; in
    here a text is a row of `counts` and `places`."""

    rows: Sequence[int]
    texts: Sequence[ThemeText]
    counts: NDArray[np.int64]
    places: Vectors
    prior: float

    def themes(self) -> list[ThemeGroup]:
        return [self._theme(np.array(sorted(group))) for group in self._partition()]

    def _partition(self) -> list[list[int]]:
        """The rows as groups. At most `EXACT` at a time are compared each with each, the most
        frequent first; of the others each joins the group nearest to it, or else waits for the
        next round."""
        groups: list[list[int]] = []
        left = np.arange(len(self.rows))
        while left.size:
            frequent = left[np.argsort(-self.counts[left], kind="stable")]
            exact = np.sort(frequent[:EXACT])
            owners = agglomerate(self.places[exact] @ self.places[exact].T, self.prior, JOIN)
            found: dict[int, list[int]] = {}
            for row, owner in zip(exact.tolist(), owners.tolist(), strict=True):
                found.setdefault(owner, []).append(row)
            fresh = list(found.values())
            left = self._assign(np.sort(frequent[EXACT:]), fresh)
            groups += fresh
        return groups

    def _assign(self, rows: NDArray[np.intp], groups: list[list[int]]) -> NDArray[np.intp]:
        """Add each of `rows` to the group it has the highest link with; return those without."""
        shapes = [_shape(self.places[group], self.prior) for group in groups]
        centroids = np.stack([centroid for centroid, _ in shapes])
        scale = np.sqrt([within * self.prior for _, within in shapes]).astype(np.float32)
        left = []
        for start in range(0, len(rows), EXACT):
            some = rows[start : start + EXACT]
            links = (self.places[some] @ centroids.T) / scale
            nearest = np.argmax(links, axis=1)
            joins = links[np.arange(len(some)), nearest] >= JOIN
            for row, group in zip(some[joins].tolist(), nearest[joins].tolist(), strict=True):
                groups[group].append(row)
            left.append(some[~joins])
        return np.concatenate(left) if left else rows

    def _theme(self, group: NDArray[np.intp]) -> ThemeGroup:
        places, counts = self.places[group], self.counts[group]
        likeness = places @ (counts.astype(np.float32) @ places)
        # Of equally telling texts the first by content.
        representative = int(group[np.argmax(likeness)])
        centroid, within = _shape(places, self.prior)
        return ThemeGroup(
            id=_hashed(_content(self.texts[representative])),
            members=tuple(sorted(self.rows[i] for i in group)),
            representative=self.rows[representative],
            count=int(counts.sum()),
            positive=self.texts[representative].positive,
            centroid=centroid,
            cohesion=within,
        )


def _shape(places: Vectors, prior: float) -> tuple[Vectors, float]:
    """Centroid and cohesion of a group."""
    size = len(places)
    total = places.sum(axis=0)
    # Rows have length 1: the sum over ordered pairs is that over all pairs less one a row.
    inner = float(total @ total) - size
    return total / np.float32(size), cohesion(size, inner, prior)


def _content(text: ThemeText) -> str:
    """What a text is sorted and hashed by."""
    return f"{text.event}\n{text.cause or ''}\n{text.positive:d}"


def _hashed(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return f"t-{digest[:10]}"
