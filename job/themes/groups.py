"""Issues to themes: groups that share a cause.

Grouping looks at what issues say (event, cause, praise or not) in the order of that content, and
neither at the order in which they arrived nor, but for the choice of the text that stands for a
theme, at how often each occurred. What stands alone is a theme of its own.

Invariant: each text is in exactly one theme, praise and problems are never in one, and a theme and
its id follow from the day's texts alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from job.fold.template import template
from job.text import language
from job.themes.ids import theme_id
from job.themes.partition import partition, shape, without_common
from job.themes.space import Encode, ThemeSpace, Vectors

DIGEST_BYTES = 16
"""Of what a text says without what varies: no two of any day are equal by chance."""

_PLACEHOLDER = re.compile(r"<[^<>\s]{0,80}>")


class ThemeText(NamedTuple):
    """What of an issue decides its theme. `positive`: it says what was praised."""

    event: str
    cause: str | None
    positive: bool


@dataclass(frozen=True, slots=True)
class ThemeGroup:
    """A theme.

    `members` are indices of its texts, `representative` that of the one most like all of it, each
    counted as often as it occurred. `count` is the number of issues. `centroid` is the mean of its
    texts' places in the space, `cohesion` how alike they are: what a later run compares.
    """

    id: str
    members: tuple[int, ...]
    representative: int
    count: int
    positive: bool
    centroid: Vectors
    cohesion: float


def group_texts(
    texts: Sequence[ThemeText],
    counts: Sequence[int],
    space: ThemeSpace,
    encode: Encode,
    totals: Mapping[bytes, int] | None = None,
) -> list[ThemeGroup]:
    """Themes of distinct `texts`, each of which occurred `counts` times; the theme with most issues
    first, equal ones by id. `encode` must be of the model of `space`. `totals`, by digest: how
    often what a text says occurred, where `texts` lacks some of the ways in which it varied."""
    groups: list[ThemeGroup] = []
    for positive in (False, True):
        alike: dict[ThemeText, list[int]] = {}
        for i, text in enumerate(texts):
            if text.positive == positive:
                alike.setdefault(plain_text(text), []).append(i)
        if alike:
            alike = dict(sorted(alike.items()))
            weights = [
                (totals or {}).get(_digest(text), sum(counts[i] for i in rows))
                for text, rows in alike.items()
            ]
            groups += _themes(alike, texts, counts, np.array(weights), space, encode)
    return sorted(groups, key=lambda group: (-group.count, group.id))


def _themes(
    alike: dict[ThemeText, list[int]],
    texts: Sequence[ThemeText],
    counts: Sequence[int],
    weights: NDArray[np.int64],
    space: ThemeSpace,
    encode: Encode,
) -> list[ThemeGroup]:
    """Themes of texts of one polarity; `alike` are those that differ only in what varies, `weights`
    how often each such lot occurred."""
    plain = list(alike)
    positive = plain[0].positive
    prior = space.prior(positive)
    places = _places(plain, space, encode)
    centred = without_common(places, [language(text.event) for text in plain])
    themes = []
    for rows in partition(centred, prior):
        own = places[rows]
        centroid, cohesion = shape(own, prior)
        # Of equally telling texts the first by content.
        telling = plain[rows[np.argmax(own @ (weights[rows].astype(np.float32) @ own))]]
        representative = min(alike[telling], key=lambda i: (-counts[i], _content(texts[i])))
        themes.append(
            ThemeGroup(
                id=theme_id("\n".join(_content(texts[representative]))),
                members=tuple(sorted(i for row in rows for i in alike[plain[row]])),
                representative=representative,
                count=int(weights[rows].sum()),
                positive=positive,
                centroid=centroid,
                cohesion=cohesion,
            )
        )
    return themes


def _places(texts: Sequence[ThemeText], space: ThemeSpace, encode: Encode) -> Vectors:
    events = [text.event for text in texts]
    if texts[0].positive:
        return space.place_praise(encode(events))
    vectors = encode([*events, *(text.cause or text.event for text in texts)])
    return space.place_problems(vectors[: len(texts)], vectors[len(texts) :])


def plain_text(text: ThemeText) -> ThemeText:
    """`text` without numbers, ids and aliases, which say nothing about the cause but weigh as much
    as words in a vector. Of a problem without a cause the event stands for it; praise has none."""
    event = _words(text.event)
    cause = None if text.positive else _words(text.cause or text.event)
    return ThemeText(event, cause, text.positive)


def digest(text: ThemeText) -> bytes:
    """What is equal for texts that differ only in what varies."""
    return _digest(plain_text(text))


def _digest(plain: ThemeText) -> bytes:
    said = "\0".join(_content(plain)).encode("utf-8", "surrogatepass")
    return blake2b(said, digest_size=DIGEST_BYTES).digest()


def _words(text: str) -> str:
    return " ".join(_PLACEHOLDER.sub(" ", template(text)).split()) or text


def _content(text: ThemeText) -> tuple[str, str, str]:
    """A text as it is sorted and hashed."""
    return text.event, text.cause or "", str(text.positive)
