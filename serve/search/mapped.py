"""Files of the index in memory: small ones read, large ones mapped, and none left open.

Invariant: what was given stays readable though its file is removed or replaced. Only where one that
is mapped is cut short in place, reading it ends the process: who reads on asks `is_cut` before.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

SMALL = 16_384
"""Bytes up to which a file is read. A run of a few records has six such files, and a process may
have 65,530 mappings (vm.max_map_count)."""


class Mapped(NamedTuple):
    """A file as it was when it was mapped."""

    path: str
    inode: int
    size: int


def content(file: Path) -> pa.Buffer:
    """What is in a file. Raises OSError and ArrowException."""
    if file.stat().st_size <= SMALL:
        return pa.py_buffer(file.read_bytes())
    with pa.memory_map(str(file)) as source:
        return source.read_buffer()


def array_of(file: Path) -> NDArray[Any]:
    """What `numpy.save` wrote into a file. Raises one of READ_ERRORS for something else."""
    data = content(file)
    reader = pa.BufferReader(data)
    if npy.read_magic(reader) != (1, 0):
        raise ValueError(f"{file} is no array of the index")
    shape, by_columns, kind = npy.read_array_header_1_0(reader)
    if by_columns or kind.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"{file} is no array of the index")
    count = math.prod(shape)
    if not count:
        return np.empty(shape, kind)
    return np.frombuffer(data, kind, count, reader.tell()).reshape(shape)


def mapped_in(folder: Path) -> tuple[Mapped, ...]:
    """The files in `folder` that are mapped, or as large as those. Raises OSError."""
    with os.scandir(folder) as listing:
        seen = [(entry.path, entry.stat()) for entry in listing if entry.is_file()]
    return tuple(Mapped(path, s.st_ino, s.st_size) for path, s in seen if s.st_size > SMALL)


def is_cut(file: Mapped) -> bool:
    """Whether somebody made a file shorter in place."""
    try:
        now = os.stat(file.path)
    except OSError:
        return False
    return now.st_ino == file.inode and now.st_size < file.size
