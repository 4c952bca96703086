"""A file or folder of the user's, on this machine or on object storage: one way to both.

Invariant: a place is a plain value that holds no secret and can be sent to another machine; what
can be done with it is done alike wherever it is. Names are those of `pathlib`. Object storage knows
no folders: there a folder is what lies below it, and one that is empty is none.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from pyarrow import fs

from job.storage.store import file_system, is_uri, split_uri


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """`store`: what its file system is opened by (`s3://bucket`), "" on this machine; `path`:
    there, absolute on this machine."""

    store: str
    path: str

    @classmethod
    def of(cls, given: str | os.PathLike[str]) -> Place:
        """The place that a path or URI names. Raises UsageError for a URI that holds a secret or
        makes no sense."""
        given = os.fspath(given)
        if is_uri(given):
            return cls(*split_uri(given))
        return cls("", os.path.abspath(os.path.expanduser(given)))

    def __str__(self) -> str:
        """As it is shown: without options."""
        return self.path if self.is_local else self._join(self.store.partition("?")[0])

    @property
    def uri(self) -> str:
        """What `of` makes this place of again."""
        address, mark, options = self.store.partition("?")
        return self.path if self.is_local else self._join(address) + mark + options

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return not self.store

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(self.path)

    @property
    def parent(self) -> Place:
        """The folder it is in."""
        return Place(self.store, posixpath.dirname(self.path))

    def __truediv__(self, name: str) -> Place:
        return Place(self.store, posixpath.join(self.path, name))

    def real(self) -> Place:
        """Equal for two places that are the same: all links followed, options of a URI left out."""
        if self.is_local:
            return Place("", os.path.realpath(self.path))
        return Place(self.store.partition("?")[0], self.path)

    def is_lasting(self, error: OSError) -> bool:
        """Whether an error met here would be the same at another try: not so for a network's."""
        return self.is_local or isinstance(error, FileNotFoundError | PermissionError)

    def look(self) -> fs.FileInfo:
        """What is there: its type, and size in bytes and time of change where that is known.
        Raises OSError."""
        return self.look_at([self])[0]

    @staticmethod
    def look_at(places: list[Place]) -> list[fs.FileInfo]:
        """What is at each of several places of one store, at once. Raises OSError."""
        if not places:
            return []
        # As bytes: the name of a local file need not be UTF-8.
        paths = [os.fsencode(place._full) for place in places]
        found: list[fs.FileInfo] = file_system(places[0].store)[0].get_file_info(paths)
        return found

    def exists(self) -> bool:
        """Whether there is anything."""
        return bool(self.look().type != fs.FileType.NotFound)

    def is_file(self) -> bool:
        """Whether there is a file."""
        return bool(self.look().type == fs.FileType.File)

    def is_dir(self) -> bool:
        """Whether there is a folder, or on object storage anything below."""
        return bool(self.look().type == fs.FileType.Directory)

    def iterdir(self) -> list[Place]:
        """What is in a folder, sorted; nothing where there is no folder. Raises OSError."""
        return sorted(place for place, _ in self.listing())

    def listing(self) -> list[tuple[Place, datetime | None]]:
        """What is in a folder, and when each was changed last, by the clock of its store."""
        if self.is_local:
            try:
                return [(self / name, None) for name in os.listdir(self.path)]
            except FileNotFoundError:
                return []
        found = self._below(recursive=False)
        return [(self / posixpath.basename(info.path), info.mtime) for info in found]

    def walk(self) -> list[tuple[Place, fs.FileInfo]]:
        """Every object below, on object storage. Raises OSError."""
        begin = len(self._base) + 1
        return [
            (Place(self.store, info.path[begin:]), info)
            for info in self._below(recursive=True)
            if info.type == fs.FileType.File
        ]

    def glob(self, pattern: str) -> list[Place]:
        """What is in a folder under a name like `pattern`, sorted."""
        return [place for place in self.iterdir() if fnmatchcase(place.name, pattern)]

    def open(self) -> Any:
        """The file as a `pyarrow.NativeFile` that can seek. Raises OSError."""
        system, _ = file_system(self.store)
        return system.open_input_file(os.fsencode(self._full))

    def read_bytes(self) -> bytes:
        """All of the file. Raises OSError."""
        with self.open() as file:
            data: bytes = file.read()
        return data

    def unlink(self) -> None:
        """Remove the file, if it is there. Raises OSError."""
        try:
            file_system(self.store)[0].delete_file(os.fsencode(self._full))
        except FileNotFoundError:
            return

    def rmtree(self) -> None:
        """Remove the folder and all in it, if it is there. Raises OSError."""
        try:
            file_system(self.store)[0].delete_dir(os.fsencode(self._full))
        except FileNotFoundError:
            return

    def copy_to(self, other: Place) -> None:
        """Copy within a store: `other` appears at once. Raises OSError."""
        file_system(self.store)[0].copy_file(os.fsencode(self._full), os.fsencode(other._full))

    def writer(self) -> Any:
        """A `pyarrow.NativeFile` to write to; where a file is to appear whole, see `write.py`."""
        return file_system(self.store)[0].open_output_stream(os.fsencode(self._full))

    @property
    def _full(self) -> str:
        if self.is_local:
            return self.path
        return posixpath.join(self._base, self.path) if self.path else self._base

    @property
    def _base(self) -> str:
        return file_system(self.store)[1]

    def _below(self, recursive: bool) -> list[fs.FileInfo]:
        wanted = fs.FileSelector(self._full, allow_not_found=True, recursive=recursive)
        found: list[fs.FileInfo] = file_system(self.store)[0].get_file_info(wanted)
        return found

    def _join(self, address: str) -> str:
        return f"{address}/{self.path}" if self.path else address
