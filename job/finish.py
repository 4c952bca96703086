"""Unfinished result files + themes -> what a run leaves beside its report.

Invariant: a finished result file holds exactly the rows of the unfinished one it came from, with
the themes of their issues filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow.compute as pc
import ray

from job.records import RESULT_SCHEMA, Result, results_to_table, table_to_results
from job.run_folder import RunFolder
from job.write import appearing, read_tables, write_table

ThemeKey = tuple[str, str, str | None]
"""Outcome, event and cause of an issue: what decides its theme."""


def finish_results(
    folder: RunFolder, unfinished: Sequence[Path], themes: Mapping[ThemeKey, str]
) -> None:
    """Write `results/part-*.parquet`, in parallel, in the order of `unfinished`."""
    folder.results.mkdir(exist_ok=True)
    shared = ray.put(dict(themes))
    parts = [folder.results / f"part-{n:05d}.parquet" for n in range(len(unfinished))]
    for leftover in set(folder.result_files()) - set(parts):
        leftover.unlink()
    finish = ray.remote(_finish_part)
    ray.get(
        [
            finish.remote(source, part, shared)
            for source, part in zip(unfinished, parts, strict=True)
        ]
    )


def _finish_part(source: Path, part: Path, themes: Mapping[ThemeKey, str]) -> None:
    tables = (
        results_to_table(with_themes(result, themes) for result in table_to_results(table))
        for table in read_tables([source])
    )
    write_table(part, tables, RESULT_SCHEMA)


def with_themes(result: Result, themes: Mapping[ThemeKey, str]) -> Result:
    """`result` with the theme of each issue, where it has one."""
    if not result.issues:
        return result
    outcome = result.outcome or ""
    return replace(
        result,
        issues=tuple(
            replace(issue, theme=themes.get((outcome, issue.event, issue.cause)))
            for issue in result.issues
        ),
    )


def write_outcomes(folder: RunFolder) -> None:
    """Write `failed.jsonl`, `review.jsonl` and `rejected.jsonl`; empty ones too, so that a reader
    can tell none from not written."""
    _write_lines(folder.root / "failed.jsonl", _chosen(folder, "failed", _failed))
    _write_lines(folder.root / "review.jsonl", _chosen(folder, "review", _reviewed))
    rejected = (path.read_bytes() for path in sorted(folder.rejected.glob("*.jsonl")))
    with appearing(folder.root / "rejected.jsonl") as hidden, hidden.open("wb") as file:
        file.writelines(rejected)


def _chosen(folder: RunFolder, via: str, row: Any) -> Iterable[dict[str, Any]]:
    for table in read_tables(folder.result_files()):
        for result in table_to_results(table.filter(pc.equal(table["via"], via))):
            yield row(result)


def _failed(result: Result) -> dict[str, Any]:
    return _where(result) | {
        "reason": result.reason,
        "provider_message": result.provider_message,
        "attempts": result.attempts,
    }


def _reviewed(result: Result) -> dict[str, Any]:
    return _where(result) | {
        "reason": result.reason,
        "outcome": result.outcome,
        "issues": [asdict(issue) for issue in result.issues],
    }


def _where(result: Result) -> dict[str, Any]:
    record = result.record
    return {name: getattr(record, name) for name in ("id", "source", "position", "text")}


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with appearing(path) as hidden, hidden.open("wb") as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
