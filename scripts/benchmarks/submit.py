"""Submit: the day sent to two Ray nodes from a clean checkout says what it says on one.

The nodes share this machine and its file system: what is shown is that the run is the same when its
parts are in different places, not that it is faster.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import read_json
from scripts.benchmarks.two_nodes import TwoNodes
from scripts.benchmarks.workload import (
    Workload,
    environment,
    fupan_command,
    prepare,
    provider_settings,
)
from scripts.days.provider import poison_phrase

_ROOT = Path(__file__).resolve().parents[2]
_FEW = 60
_POISONED = 2
"""Records of the small day, and those among them that no provider answers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    checkout = args.folder / "checkout"
    subprocess.run(["git", "clone", "-q", _ROOT, checkout], check=True)
    with Provider(provider_settings(workload)) as provider:
        command = fupan_command(workload, provider.base_url, *_places(workload, "one"))
        began = time.monotonic()
        one = subprocess.run(command, cwd=checkout, env=environment()).returncode
        seconds = time.monotonic() - began
    with TwoNodes(environment()) as nodes:
        with Provider(provider_settings(workload)) as provider:
            began = time.monotonic()
            two = _submit(nodes, checkout, workload, provider.base_url, "two")
            submitted = time.monotonic() - began
        with Provider(provider_settings(workload, quota_after=2)) as provider:
            stopped = _submit(nodes, checkout, workload, provider.base_url, "stopped")
        small = prepare(_small(args), poison=_POISONED)
        with Provider(provider_settings(small, poison=(poison_phrase(),))) as provider:
            failed = _submit(nodes, checkout, small, provider.base_url, "failed")
    here, there = (said_by(workload.folder / name) for name in ("one", "two-fetched"))
    different = [name for name in here if here[name] != there[name]]
    print_table(
        ("", "one node", "two nodes"),
        [
            ("seconds, whole command", f"{seconds:.0f}", f"{submitted:.0f}"),
            ("themes", str(len(here["themes"])), str(len(there["themes"]))),
            ("records", str(here["ledger"]["records"]), str(there["ledger"]["records"])),
        ],
    )
    return verdict(
        [
            Bar("exit code on one node", one, "==", 0),
            Bar("exit code on two", two, "==", 0),
            Bar(f"what differs ({', '.join(different) or 'nothing'})", len(different), "==", 0),
            Bar("exit code of an empty account", stopped, "==", 4),
            Bar("exit code with a record that is refused", failed, "==", 3),
        ]
    )


def said_by(out: Path) -> dict[str, Any]:
    """Headline, counts and themes of a report: what must not depend on where it was made."""
    report = read_json(out / "report.json")
    themes = [
        {name: theme[name] for name in ("id", "title", "records", "severity", "cause", "action")}
        for theme in report["themes"]
    ]
    ledger = {k: v for k, v in report["ledger"].items() if k not in ("calls", "sources")}
    return {"headline": report["headline"], "ledger": ledger, "themes": themes}


def _small(args: argparse.Namespace) -> argparse.Namespace:
    """A day that is enough to fail."""
    values = vars(args) | {"folder": args.folder / "small", "records": _FEW}
    return argparse.Namespace(**values)


def _places(workload: Workload, name: str) -> tuple[Path, Path]:
    """Where a run writes, and where its answers are: of its own, so that it recalls nothing, but
    beside those of the others, so that all have one key of aliases and send the same texts."""
    return workload.folder / name, workload.folder / "answers" / f"{name}.db"


def _submit(nodes: TwoNodes, checkout: Path, workload: Workload, base_url: str, name: str) -> int:
    command = fupan_command(workload, base_url, *_places(workload, name))
    own = ("--address", nodes.address, "--fetch", str(workload.folder / f"{name}-fetched"))
    return subprocess.run(
        [sys.executable, "scripts/submit", *own, *command[command.index("run") + 1 :]],
        cwd=checkout,
        env=os.environ | {"RAY_AUTH_TOKEN_PATH": str(nodes.token_file)},
    ).returncode
