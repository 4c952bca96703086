"""Files that appear whole or not at all.

Invariant: under its final name a file is never seen half written. On this machine it is written
beside it under a hidden name, forced to disk and renamed; on object storage it is written to a file
of this machine that has no name, then put in one request (a large one under a hidden name, then
copied by the store). A failure (a full disk, a store that refuses) leaves the old file and no
trace; what a killed process leaves has a hidden name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.storage.place import Place

ROWS_A_GROUP = 20_000
"""Rows held in memory before they are written: about 10 MB of ordinary records."""
ONE_PUT_BYTES = 5 << 20
"""`pyarrow` sends up to so much as one request. A larger object goes in parts: after a part that
failed it may make an object of the rest, so such a one is not written under its final name."""
FETCHED_BYTES = 32 << 20
"""A Parquet file up to so large is fetched from object storage as a whole: a request for each
column of each group of rows takes longer."""


@contextmanager
def appearing(place: Place, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """The file to write to; it is at `place` once the block ends well, and nowhere if not. `mode`:
    who may read and write it on this machine, less what the user's umask takes."""
    hidden = place.parent / f".{place.name}.{uuid.uuid4().hex[:8]}.part"
    if not place.is_local:
        with tempfile.TemporaryFile(prefix="fupan-") as file:
            yield file
            _put(file, place, hidden)
        return
    os.makedirs(place.parent.path, exist_ok=True)
    try:
        with open(hidden.path, "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden.path, place.path)
    except BaseException as error:
        hidden.unlink()
        if isinstance(error, OSError) and error.errno and not error.filename:
            # A write does not say to which file, and Ray Data puts its advice in a name's place.
            raise OSError(error.errno, f"{error.strerror}: {place.path}") from error
        raise


def _put(file: IO[bytes], place: Place, hidden: Place) -> None:
    """Make an object of a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= ONE_PUT_BYTES:
        with place.writer() as object_:
            object_.write(file.read())
        return
    try:
        with hidden.writer() as object_:
            shutil.copyfileobj(file, object_, ONE_PUT_BYTES)
        hidden.copy_to(place)
    finally:
        hidden.unlink()


def write_atomic(place: Place, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `place`, whole or not at all."""
    with appearing(place) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_json(place: Place, value: Any) -> None:
    """Write `value` as indented JSON."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    write_atomic(place, orjson.dumps(value, option=options))


def write_table(place: Place, tables: Iterable[pa.Table], schema: pa.Schema) -> int:
    """Write `tables` as one Parquet file of `schema`; returns the number of rows."""
    rows = 0
    with appearing(place) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=ROWS_A_GROUP)
            rows += table.num_rows
    return rows


def read_tables(places: Iterable[Place], columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of Parquet files, a bounded number at a time."""
    for place in places:
        with _fetched(place) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(ROWS_A_GROUP, columns=columns):
                yield pa.Table.from_batches([batch])


def _fetched(place: Place) -> Any:
    """A file to be read here and there, as `pyarrow` reads Parquet."""
    source = place.open()
    if place.is_local or source.size() > FETCHED_BYTES:
        return source
    with source:
        return pa.BufferReader(source.read_buffer())


def count_rows(places: Iterable[Place]) -> int:
    """The rows of Parquet files, by what they say of themselves."""
    rows = 0
    for place in places:
        with place.open() as source:
            rows += int(pq.read_metadata(source).num_rows)
    return rows


def content_name(ids: Iterable[str]) -> str:
    """The name of a file that holds the rows `ids`: the same rows, the same name."""
    digest = hashlib.blake2b(digest_size=12)
    for row_id in ids:
        digest.update(row_id.encode())
    return f"{digest.hexdigest()}.parquet"
