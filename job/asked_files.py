"""Answered blocks -> result files, in the tasks that write them.

Invariant: a task that is run again writes the same files again. What asks a model is not imported
here: each process that writes would take a second of CPU time more to start.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import ray

from job import extractive
from job.instructions import Language
from job.records import RESULT_SCHEMA, Record, Result, results_to_table, table_to_records
from job.storage.place import Place
from job.write import content_name, write_table


def write_results(block: pa.Table, into: Place) -> pa.Table:
    """Write a block of RESULT_SCHEMA as one file, named by the ids it holds; the name is the one
    row of what is returned, which has none for an empty block."""
    if block.num_rows == 0:
        return pa.table({"file": pa.array([], pa.string())})
    name = content_name(block["id"].to_pylist())
    write_table(into / name, [block], RESULT_SCHEMA)
    return pa.table({"file": [name]})


def analyse_and_write(block: pa.Table, language: Language, board: Any, into: Place) -> pa.Table:
    """`write_results` of a block of RECORD_SCHEMA by the built-in analyst; its records are unasked
    once the run was stopped."""
    stop: str | None = ray.get(board.stop_reason.remote())
    records = table_to_records(block)
    if stop is not None:
        results = [Result(record, "unasked", reason=stop) for record in records]
    else:
        results = [_by_rules(record, language) for record in records]
    return write_results(results_to_table(results), into)


def _by_rules(record: Record, language: Language) -> Result:
    answer = extractive.analyse(record, language)
    return Result(record, "answered", answer.outcome, answer.issues, model=extractive.MODEL)
