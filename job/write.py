"""Files that appear whole or not at all.

Invariant: under its final name a file is never seen half written: it is written beside it under a
hidden name, forced to disk and renamed. A failure (a full disk) leaves the old file and no trace.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

ROWS_A_GROUP = 20_000
"""Rows held in memory before they are written: about 10 MB of ordinary records."""


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """The path to write to; renamed to `path` if the block ends well, removed if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield hidden
        with hidden.open("rb+") as file:
            os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `path`, whole or not at all."""
    with appearing(path) as hidden:
        hidden.write_bytes(data.encode() if isinstance(data, str) else data)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    write_atomic(path, orjson.dumps(value, option=options))


def write_table(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> int:
    """Write `tables` as one Parquet file of `schema`; returns the number of rows."""
    rows = 0
    with appearing(path) as hidden, pq.ParquetWriter(hidden, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=ROWS_A_GROUP)
            rows += table.num_rows
    return rows


def read_tables(paths: Iterable[Path], columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of Parquet files, a bounded number at a time."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_A_GROUP, columns=columns):
                yield pa.Table.from_batches([batch])


def count_rows(paths: Iterable[Path]) -> int:
    """The rows of Parquet files, by what they say of themselves."""
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)


def content_name(ids: Iterable[str]) -> str:
    """The name of a file that holds the rows `ids`: the same rows, the same name."""
    digest = hashlib.blake2b(digest_size=12)
    for row_id in ids:
        digest.update(row_id.encode())
    return f"{digest.hexdigest()}.parquet"
