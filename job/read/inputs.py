"""Inputs as the user names them -> the files below them.

Invariant: every file below an input is found exactly once or counted as ignored; a folder that
links to itself is walked once; no two files have the same name, and every name can be printed and
encoded; what a run has written is not read by the next one, unless it is asked for by its name.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

from job.errors import InputError
from job.printable import encodable
from job.read.own import OwnFiles
from job.read.streams import Location
from serve.ask.uris import without_secrets

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


def find_files(inputs: Sequence[str], written: Iterable[Path] = ()) -> tuple[list[Found], int]:
    """The files below the inputs, sorted within each, and how many entries were ignored: hidden
    ones, those that are no files (sockets, pipes, broken links), the folders of runs, and what is
    `written` by this one.

    An input is a file, a folder (with all below it), a glob, or a URI of `pyarrow.fs`. A file
    that two inputs hold belongs to the first. Raises InputError for an input without any file, and
    for a folder that is to be written as well.
    """
    own = OwnFiles(written)
    found: dict[tuple[str, str], Found] = {}
    ignored = 0
    for index, given in enumerate(inputs):
        try:
            filesystem, base = _resolve(given)
            named = dict(_below(filesystem, base, given))
            visible = [path for path in sorted(named) if not _is_hidden(path, base)]
            local = filesystem.type_name == "local"
            if local:
                visible = [path for path in visible if not own.hold(path, _fixed(base))]
            infos = list(zip(visible, _look(filesystem, visible), strict=True))
        except (OSError, ValueError) as error:
            why = str(error).replace(given, _shown(given)) if given else str(error)
            raise InputError(
                f"cannot read the input {_shown(given)}: {without_secrets(why)}"
            ) from error
        if local and own.is_written(base):
            raise InputError(f"the input {_shown(given)} is also --out; name another folder there")
        files = [(path, info) for path, info in infos if info.type == fs.FileType.File]
        ignored += len(named) - len(files)
        if not files:
            raise InputError(_nothing(_shown(given), filesystem, base, len(named)))
        for path, info in files:
            identity = os.path.realpath(path) if local else path
            location = Location("" if local else given, path)
            found.setdefault(
                (filesystem.type_name, identity), Found(named[path], location, info.size, index)
            )
    return _distinct(list(found.values())), ignored


def _resolve(given: str) -> tuple[fs.FileSystem, str]:
    if not given.strip():
        raise ValueError("it is empty")
    if "://" in given:
        filesystem, base = fs.FileSystem.from_uri(given)
        return filesystem, base.rstrip("/")
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(given))


def _look(filesystem: fs.FileSystem, paths: Sequence[str]) -> list[fs.FileInfo]:
    """What is at each path. As bytes: the name of a local file need not be UTF-8."""
    infos: list[fs.FileInfo] = filesystem.get_file_info([os.fsencode(path) for path in paths])
    return infos


def _fixed(base: str) -> str:
    """What an input names without a doubt: all of it, or the folder above its first glob."""
    if not _GLOB & set(base) or os.path.exists(base):
        return base
    parts = base.split("/")
    first = next(index for index, part in enumerate(parts) if _GLOB & set(part))
    return "/".join(parts[:first])


def _below(filesystem: fs.FileSystem, base: str, given: str) -> Iterator[tuple[str, str]]:
    """Paths below an input, hidden ones included, each with its name."""
    kind = _look(filesystem, [base])[0].type
    if kind == fs.FileType.NotFound and _GLOB & set(base):
        local = filesystem.type_name == "local"
        matches = (LocalFileSystem() if local else ArrowFSWrapper(filesystem)).glob(base)
        for path in matches:
            kind = _look(filesystem, [path])[0].type
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
    return repr(without_secrets(given))


def _distinct(files: list[Found]) -> list[Found]:
    """Names that two files would share are replaced by longer ones, and all can be encoded; the
    longest tells a byte that is no UTF-8 from the four characters that stand for it."""
    files = [replace(file, name=encodable(file.name)) for file in files]
    for longer in (os.path.relpath, str, repr):
        counts = Counter(file.name for file in files)
        files = [
            replace(file, name=encodable(longer(file.location.path)))
            if counts[file.name] > 1
            else file
            for file in files
        ]
    return files


def _nothing(shown: str, filesystem: fs.FileSystem, base: str, ignored: int) -> str:
    if ignored:
        return f"the input {shown} holds no file that can be read ({ignored} entries ignored)"
    kind = _look(filesystem, [base])[0].type
    if kind == fs.FileType.Directory:
        return f"the folder {shown} holds no files"
    if _GLOB & set(base):
        return f"no file matches {shown}"
    return f"the input {shown} does not exist"
