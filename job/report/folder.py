"""The run's folder: what the report is made from is read here, what it is made into written.

Invariant: results are read a batch at a time; every file appears whole or not at all; rendering
again from the same folder gives the same files.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.errors import InputError, UsageError
from job.history.baseline import EarlierRuns, keep_baseline, kept_baseline
from job.history.known import load_known
from job.reduce.again import COLUMNS as AGAIN_COLUMNS
from job.reduce.again import Seen, Wanted, look_again, wanted
from job.reduce.counting import reduce_results
from job.reduce.totals import Totals
from job.report.compared import run_day
from job.report.evidence import LineOf
from job.report.evidence_csv import READ, write_evidence
from job.report.make import make_report
from job.report.markdown import render_markdown
from job.report.neighbours import COLUMNS as NEIGHBOUR_COLUMNS
from job.report.neighbours import (
    Beside,
    Spot,
    fill_neighbours,
    find_neighbours,
    merge_neighbours,
    places,
)
from job.report.page import render_html
from job.spread import spread
from job.storage.place import Place
from job.storage.store import store_words
from job.write import appearing, read_tables, write_atomic, write_json

EXAMPLES = 3
"""Rejected pieces of input shown for each reason; all are in rejected.jsonl."""


def write_report(
    out: Place,
    line_of: LineOf | None = None,
    earlier: EarlierRuns | None = None,
    known: Path | None = None,
) -> dict[str, Any]:
    """Make report.json, report.md, report.html and evidence.csv of the run in `out`.

    `line_of(source, position)` finds the line of a piece of evidence. `earlier`: what to compare
    with; None: what it was compared with before. `known`: the file of known problems; None: the one
    that the run was given. Returns the report. Raises InputError where `out` lacks a file of a run,
    LedgerError where its files contradict each other, UsageError for a file of known problems that
    is none.
    """
    run, ledger, timing = (_json(out / f"{name}.json") for name in ("run", "ledger", "timing"))
    themes = _themes(out / "themes.parquet")
    rejected = _examples(out / "rejected.jsonl")
    totals = _totals(out)
    if known is not None:
        run["known"] = str(known)
    if earlier is not None:
        day = run_day(run, totals, ZoneInfo(run["timezone"]))
        keep_baseline(out, earlier.baseline(run, day))
    report = make_report(
        totals,
        themes,
        ledger,
        timing,
        run,
        rejected,
        line_of,
        seen=_seen(out, totals),
        baseline=kept_baseline(out),
        known=load_known(Path(run["known"])) if run.get("known") else (),
    )
    beside = merge_neighbours(spread(_beside, _result_files(out), places(report)))
    fill_neighbours(report, beside, ZoneInfo(run["timezone"]), line_of)
    with appearing(out / "evidence.csv") as file:
        titles = {theme["id"]: theme["title"] for theme in themes}
        write_evidence(
            file, _results(out, list(READ)), titles, _lines(report), ZoneInfo(run["timezone"])
        )
    write_atomic(out / "report.md", render_markdown(report))
    write_atomic(out / "report.html", render_html(report))
    write_json(out / "report.json", report)
    return report


def _json(place: Place) -> dict[str, Any]:
    try:
        value: dict[str, Any] = orjson.loads(place.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise _unreadable(place, error) from error
    return value


def _result_files(out: Place) -> list[Place]:
    return (out / "results").glob("*.parquet")


def _results(out: Place, columns: list[str] | None = None) -> Iterator[pa.Table]:
    return read_tables(_result_files(out), columns)


def _totals(out: Place) -> Totals:
    """What all result files hold together, each counted by a task where Ray runs."""
    totals = Totals()
    for part in spread(_totals_of, _result_files(out)):
        totals.absorb(part)
    totals.trim()
    return totals


def _seen(out: Place, totals: Totals) -> Seen:
    """What a second look at the results finds, where there is something to look for."""
    seen, looked_for = Seen(), wanted(totals)
    if looked_for:
        for part in spread(_seen_in, _result_files(out), looked_for):
            seen.absorb(part)
    return seen


def _seen_in(place: Place, looked_for: Wanted) -> Seen:
    return look_again(read_tables([place], AGAIN_COLUMNS), looked_for)


def _beside(place: Place, wanted: set[Spot]) -> dict[Spot, Beside]:
    return find_neighbours(read_tables([place], NEIGHBOUR_COLUMNS), wanted)


def _totals_of(place: Place) -> Totals:
    return reduce_results(read_tables([place]))


def _themes(place: Place) -> list[dict[str, Any]]:
    columns = ["id", "title", "summary", "cause", "basis", "action"]
    columns += ["severity", "severity_reason", "named_by"]
    try:
        with place.open() as file:
            rows: list[dict[str, Any]] = pq.read_table(file, columns=columns).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(place, error) from error
    return rows


def _unreadable(place: Place, error: Exception) -> UsageError:
    if words := store_words(error):
        return UsageError(f"cannot read {place}: {words}")
    return InputError(f"{place}: not the folder of a finished run ({error})")


def _examples(place: Place) -> list[dict[str, Any]]:
    """The first pieces of rejected input for each reason."""
    if not place.exists():
        return []
    taken: Counter[str] = Counter()
    rows = []
    with place.open() as raw, io.BufferedReader(raw) as file:
        for line in file:
            row = orjson.loads(line)
            taken[row["reason"]] += 1
            if taken[row["reason"]] <= EXAMPLES:
                rows.append(row)
    return rows


def _lines(report: dict[str, Any]) -> dict[str, int]:
    """The lines that are known, by record."""
    return {
        piece["record"]: piece["line"]
        for theme in report["themes"]
        for piece in theme["evidence"]
        if piece["line"] is not None
    }
