"""The index of one run in a folder of its own: written once, then mapped by every replica.

    documents.arrow   the documents (Arrow IPC, not compressed, so that a hit is read in place)
    group.npy, first.npy, digests.npy   the group of each document, the document that stands for
                      each group, and the digest of the part of its text that is embedded
    themes_doc.npy, themes_no.npy       which document is of which theme, by document
    names.json        sources and themes by their numbers
    terms.npy ...     the words (postings.py)

The vectors of the groups are beside the segments (vectors.py). Invariant: a segment never changes;
a filter is exact.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from serve.search.documents import KINDS, SCHEMA, WHATS, Documents
from serve.search.mapped import Mapped, content, mapped_in
from serve.search.postings import Postings
from serve.search.query import Query
from serve.search.vectors import READ_ERRORS, Digests, Groups, Kind, is_damage

Mask = NDArray[np.bool_]
_THEME = WHATS.index("theme")
_STAYS = frozenset((errno.ENOENT, errno.EIO, errno.EISDIR, errno.ENOTDIR, errno.ELOOP))
"""That waiting does not mend. A segment can be made of its run again, and holds no vectors."""


def write_segment(folder: Path, documents: Documents) -> None:
    """Make the index of `documents` in `folder`, which appears whole. One that is damaged makes
    room for it; what is left of that is removed at the next start (leftovers.py) where it cannot be
    now, as on NFS while a replica has it open."""
    mark = uuid.uuid4().hex[:8]
    hidden = folder.parent / f".{folder.name}.{mark}.part"
    aside = folder.parent / f".{folder.name}.{mark}.old.part"
    hidden.mkdir(parents=True)
    try:
        table = documents.table.combine_chunks()
        digests = np.array(table["digest"].to_pylist(), dtype=Kind)
        _, first, group = np.unique(digests, return_index=True, return_inverse=True)
        embedded = np.array(table["embedded"].to_pylist(), dtype=Kind)
        pairs = np.array(documents.theme_of, dtype=np.int32)
        pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
        arrays = {
            "digests": embedded[first],
            "first": first.astype(np.int32),
            "group": group.astype(np.int32),
            "themes_doc": pairs[0],
            "themes_no": pairs[1],
        }
        for name, values in arrays.items():
            np.save(hidden / f"{name}.npy", values, allow_pickle=False)
        with pa.ipc.new_file(hidden / "documents.arrow", table.schema) as writer:
            writer.write_table(table)
        names = {"sources": documents.sources, "themes": documents.themes}
        (hidden / "names.json").write_bytes(orjson.dumps(names))
        Postings.of(text for text in table["text"].to_pylist()).save(hidden)
        with suppress(FileNotFoundError):
            os.rename(folder, aside)
        os.rename(hidden, folder)
    finally:
        for each in (hidden, aside):
            shutil.rmtree(each, ignore_errors=True)


def digests_in(folder: Path) -> Digests:
    """The digests of the groups of a segment, in order. Raises OSError and ValueError."""
    digests: Digests = np.load(folder / "digests.npy", allow_pickle=False)
    return digests


def _are_below(numbers: NDArray[np.int32], end: int) -> bool:
    if numbers.dtype != np.int32 or numbers.ndim != 1:
        return False
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < end)


@dataclass(frozen=True)
class Segment:
    """The index of one run, mapped. Rows of all arrays are documents, but for `first`."""

    folder: Path
    documents: pa.Table
    group: Groups
    first: Groups
    themes_doc: NDArray[np.int32]
    themes_no: NDArray[np.int32]
    sources: list[str]
    themes: list[dict[str, str]]
    words: Postings
    mapped: tuple[Mapped, ...]

    @classmethod
    def open(cls, folder: Path) -> Segment:
        """Raises one of READ_ERRORS for what is no segment."""
        arrays = {
            name: np.load(folder / f"{name}.npy", allow_pickle=False)
            for name in ("group", "first", "themes_doc", "themes_no")
        }
        mapped = mapped_in(folder)
        documents = pa.ipc.open_file(content(folder / "documents.arrow")).read_all()
        names = orjson.loads((folder / "names.json").read_bytes())
        words = Postings.load(folder)
        segment = cls(folder, documents, **arrays, **names, words=words, mapped=mapped)
        if not segment._fits():
            raise ValueError(f"{folder}: its files do not belong together")
        return segment

    def _fits(self) -> bool:
        """Whether each number names something that is there, and each text is one."""
        digests = digests_in(self.folder)
        self.documents.validate(full=True)
        return (
            self.documents.schema.equals(SCHEMA)
            and len(self.documents) == len(self.group) == len(self.words.lengths)
            and digests.shape == self.first.shape
            and digests.dtype == np.dtype(Kind)
            and self.themes_doc.shape == self.themes_no.shape
            and _are_below(self.group, len(self.first))
            and _are_below(self.first, len(self.group))
            and _are_below(self.themes_doc, len(self.group))
            and _are_below(self.themes_no, len(self.themes))
            and self.words.fits()
        )

    def __len__(self) -> int:
        return len(self.group)

    @property
    def groups(self) -> int:
        """How many different texts there are."""
        return len(self.first)

    def column(self, name: str) -> NDArray[Any]:
        """A column of numbers of the documents."""
        return self._columns[name]

    @cached_property
    def _columns(self) -> dict[str, NDArray[Any]]:
        table = self.documents
        return {
            name: table[name].combine_chunks().to_numpy(zero_copy_only=False)
            for name in ("what", "kind", "time", "severities", "source")
        }

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Documents ordered by their groups, and where each group begins."""
        order = np.argsort(self.group, kind="stable")
        starts = np.searchsorted(self.group[order], np.arange(self.groups + 1))
        return order, starts

    def members(self, group: int) -> NDArray[np.int64]:
        """The documents of a group, in order."""
        order, starts = self._members
        return order[starts[group] : starts[group + 1]]

    def theme_numbers(self, document: int) -> NDArray[np.int32]:
        """The themes that a document is of."""
        start, end = np.searchsorted(self.themes_doc, (document, document + 1))
        return self.themes_no[start:end]

    def mask(self, query: Query) -> Mask | None:
        """Which documents pass the filters of `query`; None: all.

        A theme has no kind, time or source of its own: it passes where one of its issues does.
        """
        if not query.filters:
            return None
        of_record = np.ones(len(self), dtype=np.bool_)
        if query.kind:
            wanted = [KINDS.index(kind) for kind in query.kind]
            of_record &= np.isin(self.column("kind"), wanted)
        time = self.column("time")
        if query.since is not None:
            of_record &= time >= query.since
        if query.until is not None:
            # Before every moment is what has none, and that is within no time.
            of_record &= (time <= query.until) & (time > np.iinfo(np.int64).min)
        if query.source:
            # `[` is no pattern here, and is in names of files.
            patterns = [pattern.replace("[", "[[]") for pattern in query.source]
            wanted = [
                number
                for number, name in enumerate(self.sources)
                if any(fnmatchcase(name, pattern) for pattern in patterns)
            ]
            of_record &= np.isin(self.column("source"), wanted)
        passes = of_record
        what = self.column("what")
        if query.kind or query.source or query.since is not None or query.until is not None:
            passes = of_record & (what != _THEME)
            themes = np.unique(self.themes_no[passes[self.themes_doc]])
            themes_there = self.themes_doc[np.isin(self.themes_no, themes)]
            passes[themes_there[what[themes_there] == _THEME]] = True
        if query.severities:
            passes &= (self.column("severities") & query.severities) != 0
        if query.theme:
            wanted = [n for n, theme in enumerate(self.themes) if theme["id"] in query.theme]
            of_theme = np.zeros(len(self), dtype=np.bool_)
            of_theme[self.themes_doc[np.isin(self.themes_no, wanted)]] = True
            passes &= of_theme
        if query.what:
            passes &= np.isin(what, [WHATS.index(name) for name in query.what])
        return passes


def is_sound(folder: Path) -> bool:
    """Whether a segment is there that is what was written. Raises OSError and MemoryError where
    that cannot be told now."""
    try:
        Segment.open(folder)
    except READ_ERRORS as error:
        if is_damage(error) or (isinstance(error, OSError) and error.errno in _STAYS):
            return False
        raise
    return True
