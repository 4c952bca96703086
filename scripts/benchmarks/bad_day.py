"""The bad day: the 49-minute day with a provider that fails in every way, by a seeded schedule.

10 % 5xx, 5 % resets, 3 % hangs, 10 % malformed, 10 % missing rows, 5 % cut answers, three poison
records that no error names, an outage from second 3 to 23, and no Retry-After.
"""

from __future__ import annotations

import argparse
from typing import Any

from scripts.benchmarks.checks import Bar, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results, failed_keys
from scripts.benchmarks.workload import fupan_command, prepare, provider_settings
from scripts.days.provider import poison_phrase
from serve.simulated import FaultKind, seeded_schedule

_POISON = 3
_LEAST = 3
"""Of each fault."""
_SHARES: dict[FaultKind, float] = {
    "server_error": 0.10,
    "reset": 0.05,
    "hang": 0.03,
    "malformed": 0.10,
    "missing": 0.10,
    "cut": 0.05,
}
_SCHEDULED = 120
"""Requests that the schedule covers: about what the day takes without faults, so that all of the
schedule happens."""
_OUTAGE = (3.0, 23.0)
"""Seconds from the first request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--poison", type=int, default=_POISON, help="records nobody answers")


def fault_settings(seed: int) -> dict[str, Any]:
    """The provider's settings that make the day bad."""
    return {
        "fault_schedule": seeded_schedule(_SHARES, _SCHEDULED, at_least=_LEAST, seed=seed),
        "fault_seed": seed,
        "outages": (_OUTAGE,),
        "poison": (poison_phrase(),),
        "retry_after": False,
    }


def provider_bars(stats: dict[str, Any]) -> list[Bar]:
    """What the provider saw: all faults, nothing paid twice, no body sent again after a cut."""
    happened = [stats["by_fault"].get(kind, 0) for kind in _SHARES]
    return [
        Bar("least often that a kind of fault occurred", min(happened), ">=", _LEAST),
        Bar("scheduled faults that did not occur", stats["pending_faults"], "==", 0),
        Bar("requests met by the outage", stats["by_fault"].get("outage", 0), ">=", 1),
        Bar("good answers to one record", max(stats["good_answers"].values()), "<=", 1),
        Bar("bodies repeated after a cut", stats["repeated_after_length"], "==", 0),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args, poison=args.poison)
    out, answers = workload.folder / "out", workload.folder / "answers" / "answers.db"
    settings = provider_settings(
        workload, log=workload.folder / "requests.jsonl", **fault_settings(args.seed)
    )
    with Provider(settings) as provider:
        command = fupan_command(workload, provider.base_url, out, answers)
        finished = run_command(command, workload.folder / "fupan.log")
        stats = provider.stats()
    print(finished.tail, end="\n\n")
    code = Bar("exit code", finished.exit_code, "==", 3 if args.poison else 0)
    if not code.holds:
        return verdict([code])
    poisoned = {key for key, true in workload.truth.items() if true.outcome == "refused"}
    failed = failed_keys(out)
    occurred = ", ".join(f"{kind} {n}" for kind, n in sorted(stats["by_fault"].items()))
    print(f"requests {stats['requests']}, faults: {occurred}\n")
    return verdict(
        [
            code,
            Bar("poison records in failed.jsonl", len(poisoned & set(failed)), "==", len(poisoned)),
            Bar("rows of failed.jsonl", len(failed), "==", len(poisoned)),
            *provider_bars(stats),
            *bars_of_results(out, workload.truth),
        ]
    )
