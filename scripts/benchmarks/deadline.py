"""A deadline in the middle of the 49-minute day: the report is there in time, and what matters most
was asked.

At 40 requests a minute, 40 of them at once, the day takes two minutes of asking; the deadline is
after one and a half, start and report included. Then the same command goes on without one.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from job.pack.packing import LOOK_PAST
from job.ration.importance import CHANCE_BITS, ERROR_LEVELS, Importance, importance, rank_of
from job.records import Lane, Record, record_from_row
from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results, ledger_errors, read_json
from scripts.benchmarks.workload import fupan_command, prepare, provider_settings

_RPM = 40
"""Requests a minute, and at once at the beginning."""
_LEAST_SHARE = 0.2
"""Of the records not recalled, asked and left out: else the deadline is not in the middle."""
_SPARE_SECONDS = 45.0
"""By which the report may be early: the time set aside for a busy machine, and not more."""
_HALVES = 0.15
"""By how much the asked shares of two halves of a file may differ where chance decides: the class
that the deadline cuts has hundreds of records, so four deviations."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--seconds", type=float, default=90.0, help="until the deadline")


def inversions(asked: Sequence[Record], left: Sequence[Record]) -> int:
    """How many records were left out although one of a less important class was asked."""
    least = max((importance(record) for record in asked), default=Importance.ERROR)
    return sum(importance(record) < least for record in left)


def step_inversions(asked: Sequence[Record], left: Sequence[Record]) -> int:
    """How many records were left out although one of their class and lane was asked that comes
    after them by rating or level. The lanes are asked side by side."""
    last: dict[tuple[Importance, Lane], int] = {}
    for record in asked:
        group = importance(record), record.lane
        last[group] = max(last.get(group, 0), _step(record))
    return sum(_step(record) < last.get((importance(record), record.lane), 0) for record in left)


def cut_step(asked: Sequence[Record], left: Sequence[Record]) -> tuple[int, int]:
    """Of the most important class and step of which records were left out: how many were asked,
    and how many left out."""
    step = min(map(_step, left), default=None)
    counts = [sum(_step(record) == step for record in some) for some in (asked, left)]
    return counts[0], counts[1]


def halves_apart(asked: Sequence[Record], left: Sequence[Record]) -> float:
    """Where the deadline cuts (`cut_step`): how far the asked shares of the first and the second
    half of the files lie apart; 0 where it cuts none."""
    step = min(map(_step, left), default=None)
    marked = [(record.source, record.position, True) for record in asked if _step(record) == step]
    marked += [(record.source, record.position, False) for record in left if _step(record) == step]
    if not any(was for *_, was in marked):
        return 0.0
    marked.sort()
    middle = len(marked) // 2
    shares = [
        sum(was for *_, was in half) / len(half) for half in (marked[:middle], marked[middle:])
    ]
    return abs(shares[0] - shares[1])


def _step(record: Record) -> int:
    """Class and what comes before chance in it."""
    return rank_of(record) >> CHANCE_BITS


def _read(out: Path, *vias: str) -> list[Record]:
    table = ds.dataset(out / "results", format="parquet").to_table(
        filter=ds.field("via").isin(vias)
    )
    return [record_from_row(row) for row in table.to_pylist()]


def _bars(out: Path, at: datetime, ended: datetime) -> list[Bar]:
    asked, left = _read(out, "answered", "review"), _read(out, "unasked")
    report: dict[str, Any] = read_json(out / "report.json")
    rows = [
        (
            each.name.lower(),
            *(f"{Counter(map(importance, some))[each]:,}" for some in (asked, left)),
        )
        for each in Importance
    ]
    print_table(("", "asked", "left out"), rows)
    written = max((out / name).stat().st_mtime for name in ("report.html", "report.json"))
    early = at.timestamp() - written
    spare = (at - ended).total_seconds()
    few = math.ceil(_LEAST_SHARE * (len(asked) + len(left)))
    cut_asked, cut_left = cut_step(asked, left)
    errors = [record for record in left if record.level in ERROR_LEVELS]
    return [
        Bar("seconds by which the report was early", round(early, 1), ">=", 0),
        Bar("seconds by which the report was early", round(early, 1), "<=", _SPARE_SECONDS),
        Bar("seconds by which the command ended early", round(spare, 1), ">=", 0),
        Bar("records asked", len(asked), ">=", few),
        Bar("records left out", len(left), ">=", few),
        Bar(
            "records that the report counts as unasked",
            report["ledger"]["unasked"],
            "==",
            len(left),
        ),
        Bar("equations of the ledger that fail", ledger_errors(report["ledger"]), "==", 0),
        Bar("records at level error or critical left out", len(errors), "==", 0),
        Bar("left out though a less important one was asked", inversions(asked, left), "==", 0),
        Bar(
            "left out though a higher rating or no warning was asked",
            step_inversions(asked, left),
            "<=",
            LOOK_PAST,
        ),
        Bar("where the deadline cuts, asked", cut_asked, ">=", 1),
        Bar("where the deadline cuts, left out", cut_left, ">=", 1),
        Bar(
            "asked share, two halves of a file apart",
            round(halves_apart(asked, left), 3),
            "<=",
            _HALVES,
        ),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    out, answers = workload.folder / "out", workload.folder / "answers" / "answers.db"
    log = workload.folder / "fupan.log"
    limits = ("--rpm", f"{_RPM * workload.scale:g}", "--burst", str(_RPM))
    with Provider(provider_settings(workload, rpm=_RPM, request_burst=_RPM)) as provider:
        command = fupan_command(workload, provider.base_url, out, answers, *limits)
        at = datetime.now(UTC) + timedelta(seconds=args.seconds)
        told = ("--timezone", "UTC", "--deadline", f"{at:%H:%M:%S}")
        stopped = run_command([*command, *told], log)
        ended = datetime.now(UTC)
    print(stopped.tail, end="\n\n")
    bars = [Bar("exit code", stopped.exit_code, "==", 4)]
    if not bars[0].holds:
        return verdict(bars)
    bars += _bars(out, at.replace(microsecond=0), ended)
    asked = len(_read(out, "answered", "review"))
    with Provider(provider_settings(workload, rpm=None, request_burst=None)) as provider:
        command = fupan_command(workload, provider.base_url, out, answers, "--timezone", "UTC")
        whole = run_command([*command, "--overwrite"], log)
    bars.append(Bar("exit code of the same command without a deadline", whole.exit_code, "==", 0))
    if bars[-1].holds:
        recalled = read_json(out / "ledger.json")["recalled"]
        bars += [
            Bar("records recalled by it", recalled, "==", asked),
            *bars_of_results(out, workload.truth),
        ]
    print()
    return verdict(bars)
