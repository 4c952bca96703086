"""All that one tenant sees, as one list of documents and one of groups: what a query is asked of.

Words and meaning are asked on their own, and each gives a list of groups, best first; the two are
joined by reciprocal rank (Cormack et al. 2009): a group's score is the sum of weight / (60 + its
place) over the lists that it is in. The words weigh the square of the share of what was asked
that the best of them has: who types an identifier means that, and of a question in other words than
the records have only some common word is found. With equal weights the fifty questions of
`scripts.search_quality` are answered worse by both (0.69) than by meaning alone (0.74).

Invariant: what is found passes every filter, and is of a run that the tenant sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from serve.search.catalog import IndexedRun
from serve.search.nearest import Nearest
from serve.search.postings import Asked
from serve.search.query import Query
from serve.search.segment import Mask, Segment
from serve.search.vectors import Half
from serve.search.words import asked_words

MOST_WEIGHT, POWER = 1.0, 2.0
"""Of words, see `weight_of`: what `scripts.search_quality` chooses for the questions of each cause
without having seen them."""
DEPTH = 100
"""Groups of each list, at least: a group beyond adds less than a hundred-and-sixtieth."""
RANK = 60
"""Cormack's constant: how little the first places differ."""


@dataclass(slots=True)
class Found:
    """A document that was found. `like`: how many more documents of the same text pass the filters;
    `ranks`: its place by `words` and by `meaning`, from 1."""

    run: int
    document: int
    score: float
    like: int
    ranks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lists:
    """What words and meaning found of a query, each on its own, best first, by the keys of groups.
    `share`: how much of what was asked the best by words has, 0 to 1; `masks`, `scores`: by run,
    which documents pass, and how well they answer by words."""

    found: Mapping[str, Sequence[int]]
    share: float
    masks: Mapping[int, Mask | None]
    scores: Mapping[int, NDArray[np.float32]]


class View:
    """Runs with their segments, and the vectors of all of them."""

    def __init__(
        self, runs: Sequence[tuple[IndexedRun, Segment]], nearest: Sequence[Nearest]
    ) -> None:
        """`nearest`: vectors under the keys that `offsets` gives their groups."""
        self.runs = [run for run, _ in runs]
        self.segments = [segment for _, segment in runs]
        self._nearest = nearest
        self._begins = np.cumsum([0, *(segment.groups for segment in self.segments)])

    @property
    def documents(self) -> int:
        """How many there are."""
        return sum(map(len, self.segments))

    def search(self, query: Query, vector: Half | None) -> list[Found]:
        """The best of what passes, best first. `vector`: of the query, None: only its words."""
        lists = self.lists(query, vector)
        weights = {"words": weight_of(lists.share)} if len(lists.found) > 1 else {}
        joined = join(lists.found, weights)[: query.limit]
        return [self.found(key, total, ranks, lists) for key, total, ranks in joined]

    def lists(self, query: Query, vector: Half | None) -> Lists:
        """What words and meaning find; see `search`."""
        chosen = [n for n, run in enumerate(self.runs) if _is_asked(run, query)]
        masks = {n: self.segments[n].mask(query) for n in chosen}
        depth = max(DEPTH, query.limit)
        found: dict[str, list[int]] = {}
        scores: dict[int, NDArray[np.float32]] = {}
        share = 0.0
        if query.mode != "meaning":
            asked = Asked([segment.words for segment in self.segments], asked_words(query.text))
            scores = _by_words(asked, masks)
            found["words"] = self._best(scores, depth)
            if found["words"]:
                run = self._run_of(found["words"][0])
                share = asked.share(run, int(np.argmax(scores[run])))
        if vector is not None and query.mode != "words":
            found["meaning"] = self._by_meaning(vector, masks, depth)
        return Lists(found, share, masks, scores)

    def _run_of(self, key: int) -> int:
        return int(np.searchsorted(self._begins, key, side="right")) - 1

    def _best(self, scores: Mapping[int, NDArray[np.float32]], most: int) -> list[int]:
        """The groups with the best documents."""
        keys, best = [], []
        for number, of_run in scores.items():
            rows = np.flatnonzero(of_run)
            groups = self.segments[number].group[rows]
            of_group = np.zeros(self.segments[number].groups, dtype=np.float32)
            np.maximum.at(of_group, groups, of_run[rows])
            some = np.flatnonzero(of_group)
            if len(some) > most:
                some = some[np.argpartition(-of_group[some], most - 1)[:most]]
            keys.append(some + self._begins[number])
            best.append(of_group[some])
        if not keys:
            return []
        all_keys, all_best = np.concatenate(keys), np.concatenate(best)
        order = np.lexsort((all_keys, -all_best))[:most]
        return [int(key) for key in all_keys[order]]

    def _by_meaning(self, vector: Half, masks: Mapping[int, Mask | None], most: int) -> list[int]:
        """The groups whose texts are nearest."""
        passes = None
        if len(masks) < len(self.segments) or any(mask is not None for mask in masks.values()):
            passes = np.zeros(int(self._begins[-1]), dtype=np.bool_)
            for number, mask in masks.items():
                of_run = passes[self._begins[number] : self._begins[number + 1]]
                if mask is None:
                    of_run[:] = True
                else:
                    of_run[self.segments[number].group[mask]] = True
        parts = [nearest.search(vector, most, passes) for nearest in self._nearest]
        if not parts:
            return []
        keys = np.concatenate([keys for keys, _ in parts])
        cosines = np.concatenate([cosines for _, cosines in parts])
        return [int(key) for key in keys[np.lexsort((keys, -cosines))[:most]]]

    def found(self, key: int, total: float, ranks: dict[str, int], lists: Lists) -> Found:
        """The document that stands for a group: that with the best words, or the first."""
        run = self._run_of(key)
        members = self.segments[run].members(key - int(self._begins[run]))
        mask = lists.masks[run]
        if mask is not None:
            members = members[mask[members]]
        best = int(np.argmax(lists.scores[run][members])) if run in lists.scores else 0
        return Found(run, int(members[best]), total, len(members) - 1, ranks)


def _by_words(asked: Asked, masks: Mapping[int, Mask | None]) -> dict[int, NDArray[np.float32]]:
    """The scores of the documents of each run that is asked, 0 for those that do not pass. How rare
    a word is does not depend on the filters."""
    found = {}
    for number, mask in masks.items():
        found[number] = asked.scores(number)
        if mask is not None:
            found[number][~mask] = 0
    return found


def _is_asked(run: IndexedRun, query: Query) -> bool:
    return not query.run or run.run.id in query.run or run.run.name in query.run


def weight_of(share: float, most: float = MOST_WEIGHT, power: float = POWER) -> float:
    """What words weigh beside the meaning, where the best of them has `share` of what was asked.
    Pure."""
    return float(most * share**power)


def join(
    lists: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> list[tuple[int, float, dict[str, int]]]:
    """Lists of keys as one, best first, with the score and the places of each. `weights`: of lists
    by their names, 1 where there is none. Pure."""
    ranks: dict[int, dict[str, int]] = {}
    for name, keys in lists.items():
        for place, key in enumerate(keys, start=1):
            ranks.setdefault(key, {})[name] = place
    joined = [
        (
            key,
            sum(weights.get(name, 1.0) / (RANK + place) for name, place in places.items()),
            places,
        )
        for key, places in ranks.items()
    ]
    return sorted(joined, key=lambda each: (-each[1], min(each[2].values()), each[0]))
