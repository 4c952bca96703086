"""Inputs as the user names them -> the files below them.

Invariant: every file below an input is found exactly once or counted as ignored; a folder that
links to itself is walked once; no two files have the same name.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow import fs

from job.errors import InputError
from job.read.streams import Location

_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Found:
    """A file below an input. `name`: as the user would name it, the same on every machine where
    that can be (relative to the parent of a given folder, else as given); `input`: the index of
    the input it was found under; `size`: bytes on disk."""

    name: str
    location: Location
    size: int
    input: int


def find_files(inputs: Sequence[str]) -> tuple[list[Found], int]:
    """The files below the inputs, sorted within each, and how many entries were ignored: hidden
    ones, and those that are no files (sockets, pipes, broken links).

    An input is a file, a folder (with all below it), a glob, or a URI of `pyarrow.fs`. A file
    that two inputs hold belongs to the first. Raises InputError for an input without any file.
    """
    found: dict[tuple[str, str], Found] = {}
    ignored = 0
    for index, given in enumerate(inputs):
        try:
            filesystem, base = _resolve(given)
            named = dict(_below(filesystem, base, given))
            visible = [path for path in sorted(named) if not _is_hidden(path, base)]
            infos = filesystem.get_file_info(visible)
        except (OSError, ValueError) as error:
            why = str(error).replace(given, _shown(given)) if given else str(error)
            raise InputError(f"cannot read the input {_shown(given)}: {why}") from error
        files = [info for info in infos if info.type == fs.FileType.File]
        ignored += len(named) - len(files)
        if not files:
            raise InputError(_nothing(_shown(given), filesystem, base, len(named)))
        local = filesystem.type_name == "local"
        for info in files:
            identity = os.path.realpath(info.path) if local else info.path
            location = Location("" if local else given, info.path)
            found.setdefault(
                (filesystem.type_name, identity),
                Found(named[info.path], location, info.size, index),
            )
    return _distinct(list(found.values())), ignored


def _resolve(given: str) -> tuple[fs.FileSystem, str]:
    if not given.strip():
        raise ValueError("it is empty")
    if "://" in given:
        filesystem, base = fs.FileSystem.from_uri(given)
        return filesystem, base.rstrip("/")
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(given))


def _below(filesystem: fs.FileSystem, base: str, given: str) -> Iterator[tuple[str, str]]:
    """Paths below an input, hidden ones included, each with its name."""
    kind = filesystem.get_file_info(base).type
    if kind == fs.FileType.NotFound and _GLOB & set(base):
        matches = ArrowFSWrapper(filesystem).glob(base)
        for path in matches:
            kind = filesystem.get_file_info(path).type
            if kind != fs.FileType.Directory:
                yield path, _as_given(given, path)
            elif "**" not in base:
                yield from _walk(filesystem, path)
    elif kind == fs.FileType.Directory:
        yield from _walk(filesystem, base)
    elif kind != fs.FileType.NotFound:
        yield base, _as_given(given, base)


def _walk(filesystem: fs.FileSystem, folder: str) -> Iterator[tuple[str, str]]:
    above = posixpath.dirname(folder)
    paths = (
        _walk_local(folder) if filesystem.type_name == "local" else _walk_cloud(filesystem, folder)
    )
    for path in paths:
        yield path, posixpath.relpath(path, above or ".")


def _walk_cloud(filesystem: fs.FileSystem, folder: str) -> Iterator[str]:
    for info in filesystem.get_file_info(fs.FileSelector(folder, recursive=True)):
        if info.type != fs.FileType.Directory:
            yield info.path


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


def _as_given(given: str, path: str) -> str:
    if "://" in given:
        return f"{given.split('://')[0]}://{path.lstrip('/')}"
    return path if os.path.isabs(os.path.expanduser(given)) else os.path.relpath(path)


def _shown(given: str) -> str:
    """An input in a message: a URI can hold credentials before its host and in its query."""
    return repr(re.sub(r"(?<=://)[^/@]*@|\?.*", "", given) if "://" in given else given)


def _distinct(files: list[Found]) -> list[Found]:
    """Names that two files would share are replaced by longer ones."""
    for longer in (os.path.relpath, str):
        counts = Counter(file.name for file in files)
        files = [
            replace(file, name=longer(file.location.path)) if counts[file.name] > 1 else file
            for file in files
        ]
    return files


def _nothing(shown: str, filesystem: fs.FileSystem, base: str, ignored: int) -> str:
    if ignored:
        return f"the input {shown} holds no file that can be read ({ignored} entries ignored)"
    kind = filesystem.get_file_info(base).type
    if kind == fs.FileType.Directory:
        return f"the folder {shown} holds no files"
    if _GLOB & set(base):
        return f"no file matches {shown}"
    return f"the input {shown} does not exist"
