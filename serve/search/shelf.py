"""The segments that are kept: made of runs, found again, looked after. For the one writer alone.

Invariant: what is told of is what was written: a segment whose files others changed, damaged or
removed is made anew, with those of its vectors that are whole.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from serve.search.catalog import FORMAT, IndexedRun
from serve.search.documents import read_documents
from serve.search.errors import DamagedRun
from serve.search.reports import Summaries
from serve.search.runs import RunFolder, fingerprint
from serve.search.seal import seal
from serve.search.segment import Segment, is_sound, write_segment
from serve.search.vectors import folder_of, sound_parts

_LOG = logging.getLogger(__name__)


class Shelf:
    """The segments in a folder. `space`, everywhere: the id of that of the vectors."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seals: dict[str, str] = {}
        """Of each segment with its vectors, as it was left."""
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
        if known is not None and known.segment == name:
            if self._seals.get(name) == self._seal(name, space):
                return replace(known, run=run, report=report)
            _LOG.warning("the index of the run %s is not what was written", run.id)
        else:
            known = None
        if name in self._unreadable:
            raise DamagedRun(self._unreadable[name])
        if (known is not None and known.seal != seal(folder)) or not is_sound(folder):
            self._make(run, name)
        texts = Segment.open(folder).groups
        return self.counted(IndexedRun(run, name, seal(folder), (), texts, 0, report), space)

    def counted(self, run: IndexedRun, space: str) -> IndexedRun:
        """`run` with the vectors that it has on disk. Raises OSError."""
        names, groups = sound_parts(folder_of(self._folder / run.segment, space), run.texts)
        self.left(run.segment, space)
        return replace(run, parts=tuple(names), embedded=len(groups))

    def left(self, segment: str, space: str) -> None:
        """Vectors of a segment were written: it is now as it is to stay."""
        self._seals[segment] = self._seal(segment, space)

    def forget(self, segment: str) -> None:
        """Look after a segment no longer."""
        self._seals.pop(segment, None)

    def _seal(self, segment: str, space: str) -> str:
        folder = self._folder / segment
        return seal(folder, folder_of(folder, space))

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
