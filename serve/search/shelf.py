"""The segments that are kept: made of runs, found again, looked after. For the one writer alone.

Invariant: what is told of is what was written: a segment whose files others changed, damaged or
removed is made anew, with those of its vectors that are whole, also where that was done while no
writer was there. What the writer adds vouches for nothing but itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from serve.search.catalog import FORMAT, IndexedRun
from serve.search.documents import read_documents
from serve.search.errors import DamagedRun
from serve.search.reports import Summaries
from serve.search.runs import RunFolder, fingerprint
from serve.search.seal import marks, seal
from serve.search.segment import Segment, is_sound, write_segment
from serve.search.vectors import READ_ERRORS, folder_of, is_damage, sound_parts

_LOG = logging.getLogger(__name__)


class Shelf:
    """The segments in a folder. `space`, everywhere: the id of that of the vectors."""

    def __init__(self, folder: Path, seals: Mapping[str, str] | None) -> None:
        """`seals`: of segments, as the writer before left them; None: it told nothing of them, and
        what seems whole is taken for it."""
        self._folder = folder
        self._trusting = seals is None
        self._seals = dict(seals or {})
        """Of each segment without its vectors, as it was left."""
        self._vectors: dict[str, dict[str, str]] = {}
        """The marks of each segment's files of vectors, as they were left."""
        self._unreadable: dict[str, str] = {}
        """Why segments could not be made, by the names they would have."""
        self._summaries = Summaries()

    def take_in(self, run: RunFolder, known: IndexedRun | None, space: str) -> IndexedRun:
        """A run with its segment, which is made where there is none. `known`: what was given
        before; where all is as it was, that but for what is shown of it. Raises DamagedRun, and
        OSError."""
        name = _name_of(run)
        report = self._summaries.of(run)
        folder = self._folder / name
        whole = self.is_as_left(name)
        if (
            (known is not None and known.segment == name)
            and whole
            and self._vectors.get(name) == self._marks(name, space)
        ):
            return replace(known, run=run, report=report)
        if name in self._unreadable:
            raise DamagedRun(self._unreadable[name])
        if name in self._seals and not whole:
            _LOG.warning("the index of the run %s is not what was written", run.id)
        trusted = whole or (self._trusting and name not in self._seals)
        if not trusted or not is_sound(folder):
            self._make(run, name)
        self._seals[name] = seal(folder)
        texts = Segment.open(folder).groups
        return self.counted(IndexedRun(run, name, self._seals[name], (), texts, 0, report), space)

    def is_as_left(self, segment: str) -> bool:
        """Whether a segment, but for its vectors, is what was written. Raises OSError."""
        return self._seals.get(segment) == seal(self._folder / segment)

    def counted(self, run: IndexedRun, space: str) -> IndexedRun:
        """`run` with the vectors that it has on disk: none where one of their files cannot be read
        now, so that its words are searched. Raises OSError."""
        before = self._marks(run.segment, space)
        try:
            names, groups = sound_parts(folder_of(self._folder / run.segment, space), run.texts)
        except READ_ERRORS as error:
            if is_damage(error):
                raise
            _LOG.warning(
                "the run %s is searched by its words alone until its vectors can be read; a file "
                "of them that stays unreadable can be removed, and is made anew: %s",
                *(run.run.id, error),
            )
            # All of them, so that this is not tried, and told, with every look.
            self._vectors[run.segment] = before
            return replace(run, parts=(), embedded=0)
        self._vectors[run.segment] = {name: before.get(name, "") for name in names}
        return replace(run, parts=tuple(names), embedded=len(groups))

    def left(self, segment: str, space: str, parts: Iterable[str]) -> None:
        """`parts` are the files of vectors that a segment is to have: those that it had not were
        written just now. Raises OSError."""
        had, now = self._vectors.get(segment, {}), self._marks(segment, space)
        self._vectors[segment] = {name: had.get(name) or now.get(name, "") for name in parts}

    def forget(self, segment: str) -> None:
        """Look after a segment no longer."""
        self._seals.pop(segment, None)
        self._vectors.pop(segment, None)

    def _marks(self, segment: str, space: str) -> dict[str, str]:
        folder = folder_of(self._folder / segment, space)
        return {name: mark for name, mark in marks(folder).items() if name.endswith(".parquet")}

    def _make(self, run: RunFolder, name: str) -> None:
        try:
            documents = read_documents(run)
        except DamagedRun as error:
            if _name_of(run) == name:
                self._unreadable[name] = error.message
            raise
        if _name_of(run) != name:
            raise DamagedRun("it was changed while it was read")
        write_segment(self._folder / name, documents)


def _name_of(run: RunFolder) -> str:
    """Of the segment of a run as it is now. Raises DamagedRun."""
    return f"{run.id}-{fingerprint(run)}-{FORMAT}"
