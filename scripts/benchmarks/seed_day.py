"""The 49-minute day: 3,000 unique records at 60 requests a minute, with and without fupan.

One by one and ten at a time are measured on a part and extrapolated; fupan runs the whole day. Each
has a provider of its own. Seconds are simulated ones; at scale 1 they are those of the clock.
"""

from __future__ import annotations

import argparse
from typing import Any

from scripts.benchmarks.baselines import (
    Cost,
    Script,
    extrapolate_concurrent,
    extrapolate_serial,
    part_of,
)
from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import Finished, run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results
from scripts.benchmarks.workload import Workload, fupan_command, prepare, provider_settings
from scripts.days.score import read_predictions

_SERIAL_PART = 40
_CONCURRENT_PART = 140
"""The burst of 60, and enough after it to see the pace."""
_AT_A_TIME = 10
_HEADER = ("", "calls", "seconds", "429s", "tokens", "lost rows", "peak memory")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--only-fupan", action="store_true", help="without the two naive scripts")


def _tokens(stats: dict[str, Any]) -> int:
    return int(stats["prompt_tokens"] + stats["completion_tokens"])


def _row(name: str, cost: Cost, tokens: float, memory: str) -> tuple[str, ...]:
    numbers = (cost.calls, cost.seconds, cost.rate_limited, tokens, cost.lost)
    return (name, *(f"{number:,.0f}" for number in numbers), memory)


def _one_by_one(workload: Workload) -> tuple[str, ...]:
    records = len(workload.entries)
    with Provider(provider_settings(workload)) as provider:
        script = Script(provider.base_url, workload.scale)
        part = part_of(workload.entries, _SERIAL_PART)
        script.run(part, at_a_time=1)
        tokens = _tokens(provider.stats()) * records / len(part)
    return _row("one by one *", extrapolate_serial(script.attempts, records), tokens, "-")


def _ten_at_a_time(workload: Workload) -> tuple[str, ...]:
    records = len(workload.entries)
    with Provider(provider_settings(workload)) as provider:
        script = Script(provider.base_url, workload.scale)
        part = part_of(workload.entries, _CONCURRENT_PART)
        script.run(part, _AT_A_TIME)
        tokens = _tokens(provider.stats()) * records / (len(part) - script.lost)
    cost = extrapolate_concurrent(script.attempts, script.lost, records)
    return _row("10 at a time, naive retry *", cost, tokens, "-")


def _fupan(workload: Workload) -> tuple[Finished, dict[str, Any]]:
    out, answers = workload.folder / "out", workload.folder / "answers" / "answers.db"
    with Provider(provider_settings(workload)) as provider:
        command = fupan_command(workload, provider.base_url, out, answers)
        finished = run_command(command, workload.folder / "fupan.log")
        return finished, provider.stats()


def calls_bars(stats: dict[str, Any]) -> list[Bar]:
    """Few calls, hardly a 429, and as fast as the limit allows."""
    analysis, other = stats["classes"]["analysis"], stats["classes"]["other"]
    limited = stats["by_status"].get("429", 0) / max(1, stats["requests"])
    span = (analysis["last_answer"] or 0) - (analysis["first_answer"] or 0)
    return [
        Bar("analysis answers", analysis["answers"], "<=", 120),
        Bar("naming answers", other["answers"], "<=", 8),
        Bar("share of 429s", round(limited, 4), "<=", 0.03),
        Bar("seconds from the first to the last analysis answer", round(span, 1), "<=", 75),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    finished, stats = _fupan(workload)
    print(finished.tail, end="\n\n")
    if finished.exit_code != 0:
        return verdict([Bar("exit code", finished.exit_code, "==", 0)])
    out = workload.folder / "out"
    bars = [*calls_bars(stats), *bars_of_results(out, workload.truth)]
    rows = [] if args.only_fupan else [_one_by_one(workload), _ten_at_a_time(workload)]
    cost = Cost(
        calls=stats["requests"],
        seconds=finished.seconds * workload.scale,
        rate_limited=stats["by_status"].get("429", 0),
        lost=len(workload.truth.keys() - read_predictions(out).keys()),
    )
    memory = f"{finished.peak_memory / 2**20:,.0f} MiB"
    print_table(_HEADER, [*rows, _row("fupan, the whole command", cost, _tokens(stats), memory)])
    print("* measured on a part, extrapolated to the day\n")
    return verdict(bars)
