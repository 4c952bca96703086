"""Inputs as the user names them -> the files below them.

Invariant: every file below an input is found exactly once or counted as ignored; a folder that
links to itself is walked once; no two files have the same name, and every name can be printed and
encoded; what a run has written is not read by the next one, unless it is asked for by its name.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate
from pyarrow import fs

from job.errors import InputError, UsageError
from job.printable import encodable
from job.read.own import OwnFiles
from job.storage.place import Place
from job.storage.store import is_uri, store_words
from serve.ask.uris import without_secrets

_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Found:
    """A file below an input. `name`: as the user would name it, the same on every machine where
    that can be (relative to the parent of a given folder, else as given); `input`: the index of
    the input it was found under; `size`: bytes on disk."""

    name: str
    location: Place
    size: int
    input: int


def find_files(inputs: Sequence[str], written: Iterable[Place] = ()) -> tuple[list[Found], int]:
    """The files below the inputs, sorted within each, and how many entries were ignored: hidden
    ones, those that are no files (sockets, pipes, broken links), the folders of runs, and what is
    `written` by this one.

    An input is a file, a folder (with all below it), a glob, or a URI of `pyarrow.fs`. A file
    that two inputs hold belongs to the first. Raises InputError for an input without any file, and
    for a folder that is to be written as well.
    """
    own = OwnFiles(written)
    found: dict[Place, Found] = {}
    ignored = 0
    for index, given in enumerate(inputs):
        try:
            base = _resolve(given)
            fixed = _fixed(base)
            below = {place: (name, info) for place, name, info in _below(base, given)}
            visible = [place for place in sorted(below) if not _is_hidden(place.path, base.path)]
            visible = [place for place in visible if not own.hold(place, fixed)]
            infos = _looked(visible, {place: below[place][1] for place in visible})
        except (OSError, ValueError, UsageError) as error:
            why = store_words(error) or str(error)
            why = why.replace(given, _shown(given)) if given else why
            raise InputError(
                f"cannot read the input {_shown(given)}: {without_secrets(why)}"
            ) from error
        if own.is_written(base):
            raise InputError(f"the input {_shown(given)} is also --out; name another folder there")
        files = [place for place in visible if infos[place].type == fs.FileType.File]
        ignored += len(below) - len(files)
        if not files:
            raise InputError(_nothing(_shown(given), base, len(below)))
        for place in files:
            name = below[place][0]
            found.setdefault(place.real(), Found(name, place, infos[place].size, index))
    return _distinct(list(found.values())), ignored


def _resolve(given: str) -> Place:
    if not given.strip():
        raise ValueError("it is empty")
    return Place.of(given)


def _looked(
    places: Sequence[Place], known: dict[Place, fs.FileInfo | None]
) -> dict[Place, fs.FileInfo]:
    """What is at each place: as listed where the listing told it."""
    unknown = [place for place in places if known[place] is None]
    looked = dict(zip(unknown, Place.look_at(unknown), strict=True))
    return {place: known[place] or looked[place] for place in places}


def _fixed(base: Place) -> Place:
    """What an input names without a doubt: all of it, or the folder above its first glob."""
    if not _GLOB & set(base.path) or base.exists():
        return base
    parts = base.path.split("/")
    first = next(index for index, part in enumerate(parts) if _GLOB & set(part))
    return Place(base.store, "/".join(parts[:first]))


_Entry = tuple[Place, str, fs.FileInfo | None]
"""Something below an input, its name, and what a listing told of it."""


def _below(base: Place, given: str) -> Iterator[_Entry]:
    """All below an input, hidden entries included."""
    info = base.look()
    if info.type == fs.FileType.NotFound and _GLOB & set(base.path):
        yield from _matches(base, given)
    elif info.type == fs.FileType.Directory:
        yield from _walk(base)
    elif info.type != fs.FileType.NotFound:
        yield base, _as_given(given, base), info


def _matches(base: Place, given: str) -> Iterator[_Entry]:
    """What a glob names; all below a folder that it names."""
    if not base.is_local:
        yield from _matches_listed(base, given)
        return
    for path in LocalFileSystem().glob(base.path):
        place = Place("", path)
        if not place.is_dir():
            yield place, _as_given(given, place), None
        elif "**" not in base.path:
            yield from _walk(place)


def _matches_listed(base: Place, given: str) -> Iterator[_Entry]:
    """The same on object storage, where one listing tells all that is below."""
    pattern = re.compile(glob_translate(base.path))
    for place, info in _fixed(base).walk():
        folder = place
        while "**" not in base.path and folder.path and not pattern.match(folder.path):
            folder = folder.parent
        if pattern.match(place.path):
            yield place, _as_given(given, place), info
        elif pattern.match(folder.path):
            yield place, _below_parent(place, folder), info


def _walk(folder: Place) -> Iterator[_Entry]:
    if folder.is_local:
        for path in _walk_local(folder.path):
            yield Place("", path), _below_parent(Place("", path), folder), None
    else:
        for place, info in folder.walk():
            yield place, _below_parent(place, folder), info


def _below_parent(place: Place, folder: Place) -> str:
    """The path of something in a folder, beginning with the folder's own name."""
    if not folder.path:
        return str(place).partition("://")[2]
    return posixpath.relpath(place.path, folder.parent.path or ".")


def _walk_local(folder: str) -> Iterator[str]:
    """Links to folders are followed (logs are often kept behind them), each folder once; of a
    hidden folder only its own path comes, to be counted."""

    def fail(error: OSError) -> None:
        raise error

    seen = set()
    for here, folders, files in os.walk(folder, followlinks=True, onerror=fail):
        if os.path.realpath(here) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(here))
        yield from (os.path.join(here, name) for name in files)
        yield from (os.path.join(here, name) for name in folders if name.startswith("."))
        folders[:] = [name for name in folders if not name.startswith(".")]


def _is_hidden(path: str, base: str) -> bool:
    """Whether a name below `base` begins with a dot that `base` itself does not ask for."""
    asked = base.split("/")
    return any(
        part.startswith(".") and not (depth < len(asked) and asked[depth].startswith("."))
        for depth, part in enumerate(path.split("/"))
    )


def _as_given(given: str, place: Place) -> str:
    if is_uri(given):
        return f"file://{place}" if place.is_local else str(place)
    return place.path if os.path.isabs(os.path.expanduser(given)) else os.path.relpath(place.path)


def _shown(given: str) -> str:
    """An input in a message: a URI can hold credentials before its host and in its query."""
    return repr(without_secrets(given))


def _distinct(files: list[Found]) -> list[Found]:
    """Names that two files would share are replaced by longer ones, and all can be encoded; the
    longest tells a byte that is no UTF-8 from the four characters that stand for it."""
    files = [replace(file, name=encodable(file.name)) for file in files]
    for longer in (os.path.relpath, str, repr):
        counts = Counter(file.name for file in files)
        files = [
            replace(file, name=encodable(longer(_path(file.location))))
            if counts[file.name] > 1
            else file
            for file in files
        ]
    return files


def _path(place: Place) -> str:
    """The path in its store, bucket and all."""
    return place.path if place.is_local else str(place).partition("://")[2]


def _nothing(shown: str, base: Place, ignored: int) -> str:
    if ignored:
        return f"the input {shown} holds no file that can be read ({ignored} entries ignored)"
    if base.is_dir():
        return f"the folder {shown} holds no files"
    if _GLOB & set(base.path):
        return f"no file matches {shown}"
    return f"the input {shown} does not exist"
