"""The texts of one segment that have no vector yet.

Invariant: a text is offered for embedding only if no segment has its vector of the same space.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from serve.search.holders import Holders
from serve.search.segment import Segment, digests_in
from serve.search.vectors import (
    READ_ERRORS,
    Digests,
    Groups,
    Half,
    find,
    folder_of,
    is_whole,
    parts_in,
    read_parts,
    sound_parts,
    write_part,
)

PORTION = 128
"""Texts embedded at once: with the bundled model some 10 seconds on two cores, which is what an end
in the middle can lose."""

TOGETHER = 16
"""Files of vectors that are made one."""


class Missing:
    """What is missing of a segment's vectors of the space of an id."""

    def __init__(self, segment: Path, space: str, digests: Digests) -> None:
        self._segment = segment
        self._space = space
        self._folder = folder_of(segment, space)
        self._digests = digests
        self._doubled: set[str] = set()
        """Files whose vectors another one has too, and that could not be removed."""
        self._missing = self._are_missing()

    @classmethod
    def of(cls, segment: Path, space: str) -> Missing:
        """Raises one of READ_ERRORS for what is no segment."""
        return cls(segment, space, digests_in(segment))

    def _are_missing(self) -> NDArray[np.bool_]:
        missing = np.ones(len(self._digests), dtype=np.bool_)
        names, groups = sound_parts(self._folder, len(self._digests))
        self._names = set(names)
        missing[groups] = False
        return missing

    @property
    def parts(self) -> tuple[str, ...]:
        """The files of the vectors that were found or written here, and none that others put there
        since."""
        return tuple(sorted(self._names))

    @property
    def count(self) -> int:
        """How many are missing."""
        return int(self._missing.sum())

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self._missing.any()

    def recall(self, holders: Holders) -> None:
        """Take over the vectors that other segments have."""
        tried = {self._segment}
        for number in itertools.count():
            others = holders.nth(self._digests[self._missing], number)
            if not others:
                return
            for other in others:
                if other not in tried:
                    tried.add(other)
                    with contextlib.suppress(*READ_ERRORS):
                        self._recall(other)

    def _recall(self, other: Path) -> None:
        folder = folder_of(other, self._space)
        names = parts_in(folder)
        groups = np.flatnonzero(self._missing).astype(np.int32)
        if not names or not len(groups):
            return
        known = digests_in(other)
        if not (find(known, self._digests[groups]) >= 0).any():
            return
        part = read_parts(folder, names, len(known))
        if part is None:
            return
        at = find(known[part.groups], self._digests[groups])
        there = at >= 0
        if there.any():
            self._write(groups[there], part.vectors[at[there]])

    def next(self) -> tuple[Groups, list[str]]:
        """The groups to embed next with their texts: themes first, then issues, then records."""
        segment = Segment.open(self._segment)
        groups = np.flatnonzero(self._missing).astype(np.int32)
        # Of those that are the same as far as they are embedded, one.
        groups = groups[np.unique(self._digests[groups], return_index=True)[1]]
        order = np.argsort(segment.column("what")[segment.first[groups]], kind="stable")[:PORTION]
        chosen = groups[order]
        texts = segment.documents["text"].take(pa.array(segment.first[chosen])).to_pylist()
        return chosen, texts

    def keep(self, groups: Groups, vectors: Half) -> None:
        """Write down the vectors of some groups, for all that are the same as far as they are
        embedded."""
        missing = np.flatnonzero(self._missing).astype(np.int32)
        at = find(self._digests[groups], self._digests[missing])
        self._write(missing[at >= 0], vectors[at[at >= 0]])

    def _write(self, groups: Groups, vectors: Half) -> None:
        self._names.add(write_part(self._folder, groups, self._digests[groups], vectors))
        self._missing[groups] = False

    def compact(self) -> None:
        """Make one file of many that are about as small as the smallest, so that each vector is
        written a few times in all, however many there are."""
        names = self._names - self._doubled
        sizes = {name: (self._folder / name).stat().st_size for name in sorted(names)}
        small = [name for name, size in sizes.items() if size < TOGETHER * min(sizes.values())]
        if len(small) >= TOGETHER:
            self._merge(small)

    def merge(self) -> None:
        """Make one file of all, once they are complete."""
        self._merge(sorted(self._names - self._doubled))

    def _merge(self, names: Sequence[str]) -> None:
        if len(names) < 2:
            return
        if not all(is_whole(self._folder / name) for name in names):
            self._missing = self._are_missing()
            return
        part = read_parts(self._folder, names, len(self._digests))
        if part is None:
            return
        made = write_part(self._folder, part.groups, self._digests[part.groups], part.vectors)
        self._names.add(made)
        for name in names:
            if name != made:
                self._remove(name)

    def _remove(self, name: str) -> None:
        """Remove a file whose vectors another one has too. One that cannot be does no harm."""
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError:
            self._doubled.add(name)
        else:
            self._names.remove(name)
