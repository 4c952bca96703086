"""Folded records -> results, behind the answer of the record that stands for them.

Invariant: every member becomes one result; a member whose representative has no result is an error,
not a silent loss. In memory are the answers of a bounded number of representatives, and of members
one batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from job.analyse.stored import for_record
from job.errors import LedgerError
from job.records import RECORD_SCHEMA, RESULT_SCHEMA, Answer, Issue
from job.run_folder import RunFolder
from job.spread import spread
from job.storage.place import Place
from job.write import read_tables, write_table

REPRESENTATIVES = 50_000
"""Whose answers are held at once: some 20 MB."""
ANSWERED = ("answered", "recalled")
"""Ways to end that make a folded record `folded`."""

_ANSWER = ["id", "via", "outcome", "issues", "model", "reason", "provider_message", "attempts"]
_TAKEN = [name for name in _ANSWER if name not in ("id", "via", "issues")]
_ISSUES = RESULT_SCHEMA.field("issues").type


def join_members(folder: RunFolder) -> list[Place]:
    """Join every share of the digests, in parallel; the result files written."""
    shares = [share for share in folder.members.iterdir() if share.glob("*.parquet")]
    asked = folder.asked.glob("*.parquet")
    written = spread(_join_share, shares, asked, folder.joined)
    return [path for paths in written for path in paths]


def _join_share(share: Place, asked: Sequence[Place], into: Place) -> list[Place]:
    """One result file for each lot of representatives."""
    files = share.glob("*.parquet")
    everyone = _representatives(files)
    lots = math.ceil(len(everyone) / REPRESENTATIVES)
    written = []
    for lot in range(lots):
        wanted = everyone[lot * REPRESENTATIVES : (lot + 1) * REPRESENTATIVES]
        path = into / f"{share.name}-{lot}.parquet"
        write_table(path, _joined(files, asked, wanted), RESULT_SCHEMA)
        written.append(path)
    return written


def _representatives(files: Sequence[Place]) -> pa.Array:
    """The ids of those who stand for others, sorted."""
    found = pa.array([], pa.string())
    for table in read_tables(files, columns=["represented_by"]):
        column = pc.unique(table["represented_by"])
        found = pc.unique(pa.concat_arrays([found, column]))
    return found.take(pc.array_sort_indices(found))


def _joined(files: Sequence[Place], asked: Sequence[Place], wanted: pa.Array) -> Iterator[pa.Table]:
    answers = pa.concat_tables(
        table.filter(pc.is_in(table["id"], wanted)) for table in read_tables(asked, columns=_ANSWER)
    ).combine_chunks()
    for table in read_tables(files):
        members = table.filter(pc.is_in(table["represented_by"], wanted))
        if members.num_rows:
            yield joined(members, answers)


def joined(members: pa.Table, answers: pa.Table) -> pa.Table:
    """The results of folded records (MEMBER_SCHEMA): their own texts and quotes, and what was
    answered (columns of RESULT_SCHEMA) for those who stand for them.

    `via` is `folded` only behind an answer that was asked or recalled; otherwise it is the
    representative's: what failed or stayed unasked did so for all it stands for. Raises LedgerError
    where a representative has no answer.
    """
    rows = pc.index_in(members["represented_by"], answers["id"])
    if rows.null_count:
        lost = members.filter(pc.is_null(rows))["id"]
        raise LedgerError(f"{len(lost)} folded records have no representative, first {lost[0]}")
    behind = answers.take(rows)
    answered = pc.is_in(behind["via"], pa.array(ANSWERED))
    columns: dict[str, Any] = {name: members[name] for name in RECORD_SCHEMA.names}
    columns["represented_by"] = members["represented_by"]
    columns |= {name: behind[name] for name in _TAKEN}
    columns["via"] = pc.if_else(answered, "folded", behind["via"])
    columns["issues"] = _quoting(behind["issues"], members["text"])
    return pa.table({name: columns[name] for name in RESULT_SCHEMA.names}).cast(RESULT_SCHEMA)


def _quoting(issues: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.Array:
    """The issues of each answer, quoting the text of the member in the same row."""
    quoted: list[list[dict[str, Any]]] = [[] for _ in range(len(issues))]
    told = pc.greater(pc.list_value_length(issues), 0)
    rows = pc.indices_nonzero(told)
    for row, some, text in zip(
        rows.to_pylist(), issues.take(rows).to_pylist(), texts.take(rows).to_pylist(), strict=True
    ):
        own = for_record(Answer("unclear", tuple(Issue(**issue) for issue in some)), text)
        quoted[row] = [asdict(issue) for issue in own.issues]
    return pa.array(quoted, _ISSUES)
