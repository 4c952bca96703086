"""Folded records -> results, behind the answer of the record that stands for them.

Invariant: every member file is read once, every member becomes one result; a member whose
representative has no result is an error, not a silent loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import ray

from job.errors import LedgerError
from job.fold import join_member
from job.records import RESULT_SCHEMA, results_to_table
from job.run_folder import RunFolder
from job.write import read_tables, write_table


def join_members(folder: RunFolder) -> list[Path]:
    """Join every share of the digests, in parallel; the result files written."""
    shares = sorted(path for path in folder.members.iterdir() if any(path.iterdir()))
    asked = sorted(folder.asked.glob("*.parquet"))
    join = ray.remote(_join_share)
    return list(ray.get([join.remote(share, asked, folder.joined) for share in shares]))


def _join_share(share: Path, asked: Sequence[Path], into: Path) -> Path:
    files = sorted(share.glob("*.parquet"))
    wanted = pa.array(sorted(_representatives(files)), pa.string())
    answers: dict[str, dict[str, Any]] = {}
    for table in read_tables(asked):
        chosen = table.filter(pc.is_in(table["id"], wanted))
        answers.update((row["id"], row) for row in chosen.to_pylist())
    path = into / f"{share.name}.parquet"
    write_table(path, _joined(files, answers), RESULT_SCHEMA)
    return path


def _representatives(files: Sequence[Path]) -> set[str]:
    found: set[str] = set()
    for table in read_tables(files, columns=["represented_by"]):
        found.update(pc.unique(table["represented_by"]).to_pylist())
    return found


def _joined(files: Sequence[Path], answers: dict[str, dict[str, Any]]) -> Iterator[pa.Table]:
    for table in read_tables(files):
        rows = table.to_pylist()
        lost = [row["id"] for row in rows if row["represented_by"] not in answers]
        if lost:
            raise LedgerError(f"{len(lost)} folded records have no representative, first {lost[0]}")
        yield results_to_table(join_member(row, answers[row["represented_by"]]) for row in rows)
