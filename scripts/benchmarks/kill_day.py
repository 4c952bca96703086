"""kill -9: the driver is killed at a third and at two thirds of the day, the command is repeated.

The end must be as if nothing had happened: the results and the themes of an undisturbed run, and
no record paid for twice but those whose calls were in flight when the driver was killed.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from scripts.benchmarks.checks import Bar, verdict
from scripts.benchmarks.command import Command, run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results
from scripts.benchmarks.workload import Workload, fupan_command, prepare, provider_settings

_KILL_AT = (1 / 3, 2 / 3)
"""Shares of the records that have a good answer."""
_MAY_DIFFER = ("via", "represented_by")
_LOOK_SECONDS = 0.1
_CLOSE = 1e-4
"""Centroids are means of floats that may come in another order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


@dataclass(frozen=True, slots=True)
class Killing:
    """A kill. `ended`: requests that had ended before it; `begun`: those that had begun when the
    last process was gone; `forced`: processes that did not end by themselves."""

    ended: int
    begun: int
    forced: int


def asked_in_flight(log: Sequence[Mapping[str, Any]], killing: Killing) -> set[str]:
    """Records whose request had not ended when the kill came and had begun before all was over."""
    late = (entry for entry in log[killing.ended :] if entry["request"] <= killing.begun)
    return {record for entry in late for record in entry["records"]}


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, floats (also in lists) nearly so."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=_CLOSE, abs_tol=_CLOSE)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def different_rows(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """Rows that differ, counted by column; rows are paired by `id`, one that has no partner counts
    for the column `id`."""
    by_id = {row["id"]: row for row in left}
    counts: dict[str, int] = {}
    alone = len(by_id.keys() ^ {row["id"] for row in right})
    if alone:
        counts["id"] = alone
    for row in right:
        for column, value in by_id.get(row["id"], row).items():
            if column not in _MAY_DIFFER and not same(value, row[column]):
                counts[column] = counts.get(column, 0) + 1
    return counts


def read_results(out: Path) -> list[dict[str, Any]]:
    """The rows of a run's results, by id."""
    table = ds.dataset(out / "results", format="parquet").to_table()
    return list(table.sort_by("id").to_pylist())


def read_themes(out: Path) -> list[dict[str, Any]]:
    """The rows of a run's themes."""
    return list(pq.read_table(out / "themes.parquet").to_pylist())


def _kill_at(share: float, workload: Workload, provider: Provider, command: Command) -> Killing:
    """Wait until `share` of the records have a good answer, then kill.

    Raises RuntimeError where the command ends before.
    """
    wanted = share * len(workload.truth)
    while len((stats := provider.stats())["good_answers"]) < wanted:
        if not command.running:
            raise RuntimeError(f"the command ended before {share:.0%} of the day was answered")
        time.sleep(_LOOK_SECONDS)
    ended = len(provider.log())
    forced = command.kill()
    stats = provider.stats()
    return Killing(ended, stats["requests"] + stats["in_flight"], forced)


def _undisturbed(workload: Workload, out: Path, answers: Path) -> int:
    with Provider(provider_settings(workload)) as provider:
        command = fupan_command(workload, provider.base_url, out, answers)
        finished = run_command(command, workload.folder / "undisturbed.log")
    print(finished.tail, end="\n\n")
    return finished.exit_code


def _disturbed(
    workload: Workload, out: Path, answers: Path
) -> tuple[int, list[Killing], dict[str, Any], list[dict[str, Any]]]:
    settings = provider_settings(workload, log=workload.folder / "requests.jsonl")
    log = workload.folder / "disturbed.log"
    killings = []
    with Provider(settings) as provider:
        command = fupan_command(workload, provider.base_url, out, answers)
        for share in _KILL_AT:
            with Command(command, log) as running:
                killings.append(_kill_at(share, workload, provider, running))
        finished = run_command(command, log)
        stats, requests = provider.stats(), provider.log()
    print(finished.tail, end="\n\n")
    return finished.exit_code, killings, stats, requests


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    one, other = (workload.folder / name for name in ("undisturbed", "disturbed"))
    code = _undisturbed(workload, one / "out", one / "answers" / "answers.db")
    # The key of the aliases lies beside the answers; with another one the texts would differ.
    shutil.copytree(
        one / "answers", other / "answers", ignore=shutil.ignore_patterns("answers.db*")
    )
    again, killings, stats, log = _disturbed(
        workload, other / "out", other / "answers" / "answers.db"
    )
    ended = [Bar("exit code, undisturbed", code, "==", 0), Bar("exit code, killed", again, "==", 0)]
    if not all(bar.holds for bar in ended):
        return verdict(ended)
    twice = {record for record, times in stats["good_answers"].items() if times > 1}
    in_flight: set[str] = set().union(*(asked_in_flight(log, killing) for killing in killings))
    rows = different_rows(read_results(one / "out"), read_results(other / "out"))
    themes = different_rows(read_themes(one / "out"), read_themes(other / "out"))
    print(f"killed at {', '.join(f'{share:.0%}' for share in _KILL_AT)}: {killings}")
    print(f"records in flight {len(in_flight)}, answered twice {len(twice)}")
    print(f"differences by column: results {rows}, themes {themes}\n")
    return verdict(
        [
            *ended,
            Bar("records answered twice that were not in flight", len(twice - in_flight), "==", 0),
            Bar("differing values in the results", sum(rows.values()), "==", 0),
            Bar("differing values in the themes", sum(themes.values()), "==", 0),
            *bars_of_results(other / "out", workload.truth),
        ]
    )
