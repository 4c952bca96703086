"""evidence.csv: every problem record with its theme, for a spreadsheet.

Invariant: a row for every issue of every problem record (one without issues has one row), in the
order of the results; no cell is taken for a formula. Written a batch at a time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = (
    "record",
    "source",
    "line",
    "position",
    "time",
    "kind",
    "service",
    "user",
    "severity",
    "theme",
    "title",
    "event",
    "cause",
    "quote",
    "text",
)
READ = ("id", "source", "position", "time", "kind", "service", "user", "text", "outcome", "issues")
"""Columns of the results that are looked at."""
CELL_CHARS = 32_767
"""The most that a spreadsheet's cell holds in Excel; a longer text ends in ` […]`."""
_CUT = " […]"
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""First characters that make a spreadsheet calculate (OWASP, CSV injection), also after white
space, which some of them drop."""


def write_evidence(
    file: IO[bytes],
    results: Iterable[pa.Table],
    titles: Mapping[str, str],
    lines: Mapping[str, int],
    zone: ZoneInfo,
) -> int:
    """Write the problem rows of `results` (of RESULT_SCHEMA) to `file`; returns how many.

    `titles` by theme id. `lines` by record id: those that are known. The file starts with a byte
    order mark, without which Excel takes UTF-8 for the local code page.
    """
    rows = 0
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for table in results:
        for row in _rows(table, titles, lines, zone):
            writer.writerow([cell(row[name]) for name in COLUMNS])
            rows += 1
    text.detach()
    return rows


def cell(value: object) -> str:
    """`value` as a cell that is shown as it is and never calculated."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\0", "\ufffd")
    if text.lstrip().startswith(_FORMULA) or text.startswith(("\t", "\r", "\n")):
        text = "'" + text
    return text if len(text) <= CELL_CHARS else text[: CELL_CHARS - len(_CUT)] + _CUT


def _rows(
    table: pa.Table, titles: Mapping[str, str], lines: Mapping[str, int], zone: ZoneInfo
) -> Iterator[dict[str, Any]]:
    problems = table.select(READ).filter(pc.equal(table["outcome"], "problem"))
    for batch in problems.to_batches(max_chunksize=2_048):
        for row in batch.to_pylist():
            record = row | {
                "record": row["id"],
                "line": lines.get(row["id"]),
                "time": _local(row["time"], zone),
            }
            for issue in row["issues"] or [dict.fromkeys(("event", "cause", "quote"))]:
                theme = issue.get("theme")
                yield record | {
                    "severity": issue.get("severity"),
                    "theme": theme,
                    "title": titles.get(theme) if theme else None,
                    "event": issue["event"],
                    "cause": issue["cause"],
                    "quote": issue["quote"],
                }


def _local(time: datetime | None, zone: ZoneInfo) -> str | None:
    """Date and time in the report's zone, as spreadsheets read them."""
    return None if time is None else f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S}"
