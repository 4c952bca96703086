"""Overhead: what of the wall time of 3,000 records is not waiting for the provider.

The provider has its usual latency and no limit, so that the run is short; the parts come from
timing.json.
"""

from __future__ import annotations

import argparse

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import read_json
from scripts.benchmarks.workload import fupan_command, prepare, provider_settings

_MOST_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    out, answers = workload.folder / "out", workload.folder / "answers" / "answers.db"
    with Provider(provider_settings(workload, rpm=None, request_burst=None)) as provider:
        command = fupan_command(
            workload, provider.base_url, out, answers, "--max-concurrency", "20"
        )
        finished = run_command(command, workload.folder / "fupan.log")
    print(finished.tail, end="\n\n")
    if finished.exit_code != 0:
        return verdict([Bar("exit code", finished.exit_code, "==", 0)])
    timing = read_json(out / "timing.json")
    named = [(name, f"{timing[name]:.1f}") for name in ("wall_s", "calls_s", "naming_calls_s")]
    parts = [(f"  {name}", f"{seconds:.1f}") for name, seconds in timing["stations"].items()]
    outside = finished.seconds - timing["wall_s"]
    rows = [*named, *parts, ("before and after", f"{outside:.1f}")]
    print_table(("seconds", ""), rows)
    overhead = timing["overhead_s"] + outside
    return verdict(
        [Bar("overhead of the whole command, seconds", round(overhead, 1), "<=", _MOST_SECONDS)]
    )
