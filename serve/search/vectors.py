"""The vectors of a run's texts, kept in Parquet: what was embedded once is not embedded again.

A vector is known by the digest of the part of a text that is embedded: groups of documents whose
texts differ only beyond it share one. A folder of vectors belongs to one space (space.py) and grows
by files that appear whole, with rows of (group, digest, vector); each is named by the digest of
what was written, so that damage can be told from what merely cannot be read now.

Invariant: a kept vector belongs to its digest and the folder's space; a file that is not what was
written is as if it had never been there, and no other file is ever removed for an error.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from tokenize import TokenError

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FOLDER = "vectors"
"""Beside the folder of segments."""
DIGEST_BYTES = 16
CLIPPED = 600
"""Characters of a text that are embedded: such models read 512 tokens, which is as much Chinese.
The bundled one reads more, at a cost that grows by the square (2,000 characters: 4.7 s of CPU, 600:
1.0)."""

READ_ERRORS = (
    *(OSError, EOFError, RuntimeError, MemoryError, pa.ArrowException),
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
    *(SyntaxError, TokenError),  # of NumPy, for the beginning of a file
)
"""What reading raises for a damaged file, or for one that cannot be read now, whichever library
reads it."""


def is_damage(error: Exception) -> bool:
    """Whether an error says that a file is not what was written; else it cannot be read now, for
    want of memory or open files, or because it is not there."""
    if isinstance(error, MemoryError):
        return False
    # Arrow raises OSError without a number for what a file holds.
    return not isinstance(error, OSError) or error.errno is None


Half = NDArray[np.float16]
Digests = NDArray[np.void]
"""One item of DIGEST_BYTES each."""
Groups = NDArray[np.int32]
Kind = f"S{DIGEST_BYTES}"
"""Of NumPy, by which digests compare."""


class DamagedPart(ValueError):
    """A file of vectors is not what was written."""


def clipped(text: str) -> str:
    """The part of a text that is embedded."""
    return text[:CLIPPED]


def digest_of(text: str) -> bytes:
    """What stands for a text, or for the part of it that is embedded."""
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def folder_of(segment: Path, space: str) -> Path:
    """Where the vectors of a segment are kept that are of the space of this id (space.py): beside
    the segments, so that making one anew moves no vector."""
    return segment.parent.parent / FOLDER / segment.name / space


@dataclass(frozen=True, slots=True)
class Part:
    """Vectors of some groups: row i belongs to `groups[i]`."""

    groups: Groups
    vectors: Half


def parts_in(folder: Path) -> list[str]:
    """The names of the files of vectors in `folder`, sorted."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))
    except FileNotFoundError:
        return []


def write_part(folder: Path, groups: Groups, digests: Digests, vectors: Half) -> str:
    """Keep vectors in a file of their own, which appears whole; its name: the same for the same."""
    folder.mkdir(parents=True, exist_ok=True)
    length = vectors.shape[1]
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    table = pa.table(
        {
            "group": pa.array(groups, pa.int32()),
            "digest": pa.array(_as_bytes(digests), pa.binary(DIGEST_BYTES)),
            "vector": pa.FixedSizeListArray.from_arrays(flat, length),
        }
    )
    hidden = folder / f".{uuid.uuid4().hex}.part"
    pq.write_table(table, hidden, compression="zstd")
    name = f"{_content(hidden)}.parquet"
    os.replace(hidden, folder / name)
    return name


def _content(file: Path) -> str:
    """The digest of what is in a file. Raises OSError."""
    with file.open("rb") as opened:
        return file_digest(opened, lambda: blake2b(digest_size=DIGEST_BYTES)).hexdigest()


def is_whole(file: Path) -> bool:
    """Whether a file of vectors is what was written. Raises OSError where it cannot be read now."""
    return _content(file) == file.stem


def _as_bytes(digests: Digests) -> list[bytes]:
    """Each in its full length: NumPy's items lose the zeros at their end."""
    data = np.ascontiguousarray(digests).tobytes()
    return [data[start : start + DIGEST_BYTES] for start in range(0, len(data), DIGEST_BYTES)]


def read_part(file: Path) -> Part:
    """Raises DamagedPart for a file that is not what was written, and another of READ_ERRORS where
    it cannot be read now."""
    if not is_whole(file):
        raise DamagedPart(f"{file} is not what was written")
    table = pq.read_table(file, columns=["group", "vector"]).combine_chunks()
    if table.num_rows == 0:
        raise DamagedPart(f"{file} holds no vectors")
    groups = table["group"].to_numpy().astype(np.int32)
    column = table["vector"].combine_chunks()
    flat = (column.chunk(0) if isinstance(column, pa.ChunkedArray) else column).flatten()
    vectors = flat.to_numpy().astype(np.float16).reshape(len(groups), -1)
    if not np.isfinite(vectors).all():
        raise DamagedPart(f"{file} holds what is no vector")
    return Part(groups, vectors)


def read_parts(folder: Path, names: Sequence[str], most: int) -> Part | None:
    """All vectors in files of `folder`, of each group below `most` one, in the order of the groups;
    None: there are none. A damaged file is left out. Raises one of READ_ERRORS where one cannot be
    read now, or is not there."""
    parts = []
    for name in names:
        with suppress(DamagedPart):
            parts.append(read_part(folder / name))
    lengths = {part.vectors.shape[1] for part in parts}
    if len(lengths) != 1:
        return None
    groups, first = np.unique(np.concatenate([part.groups for part in parts]), return_index=True)
    sane = (groups >= 0) & (groups < most)
    vectors = np.concatenate([part.vectors for part in parts])[first[sane]]
    return Part(groups[sane].astype(np.int32), vectors)


def sound_parts(folder: Path, most: int) -> tuple[list[str], Groups]:
    """The names of the files of vectors in `folder`, and the groups below `most` whose vectors they
    hold. For who writes there alone: a damaged one is removed. Raises one of READ_ERRORS where one
    cannot be read now."""
    found: dict[str, Groups] = {}
    for name in parts_in(folder):
        try:
            found[name] = read_part(folder / name).groups
        except DamagedPart:
            (folder / name).unlink()
    groups = np.unique(np.concatenate([np.empty(0, np.int32), *found.values()]))
    return list(found), groups[(groups >= 0) & (groups < most)].astype(np.int32)


def find(known: Digests, wanted: Digests) -> NDArray[np.intp]:
    """Where in `known` each of `wanted` is; -1: nowhere."""
    if len(known) == 0:
        return np.full(len(wanted), -1, dtype=np.intp)
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known, wanted, sorter=order)
    at[at == len(known)] = 0
    return np.where(known[order[at]] == wanted, order[at], -1)
