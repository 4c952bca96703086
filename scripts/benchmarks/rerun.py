"""Paid once: the day again, with 1 % more, and the same texts in other files.

The day is asked once; then the same command writes into another folder, the inputs grow by 1 %, and
the same texts lie in files of other names and in another order. What each run asks is told by the
log of the provider, which knows the records of a request by their texts.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import read_json
from scripts.benchmarks.workload import (
    Workload,
    fupan_command,
    prepare,
    provider_settings,
)
from scripts.days.compose import Entry
from scripts.days.files import CSV_HEADER, write_day
from scripts.days.seed_day import make_seed_day

_MOST_SECONDS = 15.0
"""For the whole command, per 3,000 records, where nothing is asked."""
_MORE = 0.01
_NAMING_CALLS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run: its exit code and wall time, the requests it sent, how many of them held no records,
    the records of the others, its ledger and its stations' seconds."""

    exit_code: int
    seconds: float
    requests: int
    naming: int
    records: list[str]
    ledger: dict[str, Any] = field(default_factory=dict)
    stations: dict[str, float] = field(default_factory=dict)
    tail: str = ""


class Runs:
    """Runs of `fupan` on one store, one after the other."""

    def __init__(self, workload: Workload, provider: Provider) -> None:
        self._workload, self._provider = workload, provider
        self._answers = workload.folder / "answers" / "answers.db"
        self._logged = 0

    def run(self, name: str, inputs: Path) -> Rerun:
        """Run the command on `inputs` into a folder of its own."""
        out = self._workload.folder / f"out-{name}"
        command = fupan_command(
            self._workload, self._provider.base_url, out, self._answers, "--max-concurrency", "20"
        )
        command[command.index(str(self._workload.input))] = str(inputs)
        finished = run_command(command, self._workload.folder / f"{name}.log")
        log = self._provider.log()
        entries, self._logged = log[self._logged :], len(log)
        records = [record for entry in entries for record in entry["records"]]
        naming = sum(not entry["records"] for entry in entries)
        how = finished.exit_code, finished.seconds, len(entries), naming, records
        if finished.exit_code != 0:
            return Rerun(*how, tail=finished.tail)
        stations = read_json(out / "timing.json")["stations"]
        around = finished.seconds - sum(stations.values())
        stations["before, between and after"] = around
        return Rerun(*how, read_json(out / "ledger.json"), stations)


def append(entries: Sequence[Entry], folder: Path) -> None:
    """Write `entries` at the ends of the files of a day."""
    more = folder.with_name("more")
    write_day(more, entries)
    for file in more.iterdir():
        data = file.read_bytes().removeprefix(CSV_HEADER.encode())
        with (folder / file.name).open("ab") as old:
            old.write(data)
    shutil.rmtree(more)


def _grown(args: argparse.Namespace, workload: Workload) -> Path:
    """The day with 1 % more records, which say what no other says."""
    folder = workload.folder / "grown"
    shutil.copytree(workload.input, folder)
    known = {entry.text for entry in workload.entries}
    many = make_seed_day(args.seed + 1, args.records, 0)
    new = [entry for entry in many if entry.text not in known]
    append(new[: max(1, round(_MORE * args.records))], folder)
    return folder


def _elsewhere(args: argparse.Namespace, workload: Workload) -> Path:
    """The day in another order, in files of other names."""
    folder = workload.folder / "elsewhere"
    entries = list(workload.entries)
    random.Random(args.seed).shuffle(entries)
    write_day(folder, entries)
    for file in list(folder.iterdir()):
        file.rename(folder / f"copy-of-{file.name}")
    return folder


def bars_of(runs: dict[str, Rerun], more: int, most_seconds: float) -> list[Bar]:
    """What each run may ask and take; `more`: records that were added."""
    first, again, grown, elsewhere = runs.values()
    before = set(first.records)
    return [
        *(Bar(f"exit code, {name}", one.exit_code, "==", 0) for name, one in runs.items()),
        Bar("requests, the same again", again.requests, "==", 0),
        Bar("seconds, the same again", round(again.seconds, 1), "<=", most_seconds),
        Bar("records in calls, 1 % more", len(set(grown.records)), "==", more),
        Bar("of these known before", len(before & set(grown.records)), "==", 0),
        Bar("requests without records, 1 % more", grown.naming, "<=", _NAMING_CALLS),
        Bar("records in calls, other files", len(elsewhere.records), "==", 0),
        Bar("requests, other files", elsewhere.requests, "==", 0),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    grown, elsewhere = _grown(args, workload), _elsewhere(args, workload)
    settings = provider_settings(
        workload, rpm=None, request_burst=None, log=workload.folder / "provider.log"
    )
    runs: dict[str, Rerun] = {}
    with Provider(settings) as provider:
        running = Runs(workload, provider)
        for name, inputs in (
            ("first", workload.input),
            ("again", workload.input),
            ("grown", grown),
            ("elsewhere", elsewhere),
        ):
            runs[name] = running.run(name, inputs)
            if runs[name].exit_code != 0:
                print(runs[name].tail, file=sys.stderr)
                return verdict([Bar(f"exit code, {name}", runs[name].exit_code, "==", 0)])
    names = list(runs["first"].stations)
    print_table(
        ("seconds", *runs),
        [
            ("the whole command", *(f"{one.seconds:.1f}" for one in runs.values())),
            *(
                (f"  {name}", *(f"{one.stations.get(name, 0.0):.1f}" for one in runs.values()))
                for name in names
            ),
            ("requests", *(f"{one.requests:,}" for one in runs.values())),
            ("recalled", *(f"{one.ledger['recalled']:,}" for one in runs.values())),
            ("answered", *(f"{one.ledger['answered']:,}" for one in runs.values())),
        ],
    )
    print()
    most = _MOST_SECONDS * max(1.0, args.records / 3000)
    return verdict(bars_of(runs, max(1, round(_MORE * args.records)), most))
