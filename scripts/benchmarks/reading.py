"""Reading: read + clean + fold on the Ray pipeline, against one plain process.

JSON lines of operations, a plain log and chats are read by the pipeline that a run has, after
start-up (the cluster, its workers and its actors are there), and by the same functions in this
process, one slice after the other. The bytes are also parsed by bare `json.loads` (a log line as a
JSON string), so that slow pure code does not hide behind the ratio. Both take turns, and the best
round of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import ray

from job.clean.cleaner import CleanSettings
from job.cluster import cluster
from job.fold.folding import CAPACITY, Claims, Shards, came_first, claimed, start_shards
from job.intake import Intake
from job.ledger import read_manifests
from job.mask.masking import Masker
from job.pipeline import read_everything
from job.progress import start_board
from job.read import Plan, plan_inputs
from job.records import Record, SliceCounts
from job.run_folder import RunFolder
from job.storage.place import Place
from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.memory import process_tree
from scripts.benchmarks.reading_mix import write_mix

_RECORDS = 200_000
_WARM_UP = 20_000
_LEAST_GAIN = 1.4
"""Times the speed of one plain process, on two cores."""
_DAY, _ZONE = date(2026, 3, 14), ZoneInfo("Asia/Shanghai")


@dataclass(frozen=True, slots=True)
class Pace:
    """What was read in a time. `cpu`: seconds that all processes together used for it."""

    records: int
    folded: int
    bytes: int
    seconds: float
    cpu: float

    def row(self, name: str) -> tuple[str, ...]:
        """For the table."""
        return (
            name,
            f"{self.records:,}",
            f"{self.folded:,}",
            f"{self.seconds:.1f}",
            f"{self.cpu:.1f}",
            f"{self.records / self.seconds:,.0f}",
            f"{self.bytes / self.seconds / 1e6:.2f}",
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.set_defaults(records=_RECORDS)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    files = write_mix(args.folder / "mix", args.records, args.seed)
    small = write_mix(args.folder / "small", _WARM_UP, args.seed)
    plan, warm_up = _plan(files), _plan(small)
    alone, together = [], []
    with cluster():
        _timed(warm_up, args.folder / "warm-up", _on_ray, *_started(len(warm_up.slices)))
        for number in range(args.rounds):
            folder = args.folder / f"round-{number}"
            alone.append(_timed(plan, folder / "plain", _in_this_process, _OwnShards(), _NoBoard))
            together.append(_timed(plan, folder / "ray", _on_ray, *_started(len(plan.slices))))
    parsed = min(_parse(files) for _ in range(args.rounds))
    best_alone, best = (min(paces, key=lambda pace: pace.seconds) for paces in (alone, together))
    loads = Pace(best.records, 0, plan.size, parsed, parsed)
    rows = [
        best.row("Ray pipeline"),
        best_alone.row("one plain process"),
        loads.row("bare json.loads"),
    ]
    print_table(("", "records", "folded", "seconds", "CPU s", "records/s", "MB/s"), rows)
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {len(plan.slices)} slices, best of {args.rounds} rounds")
    gain = best_alone.cpu * cores / best.cpu
    print(f"by CPU time alone {cores} idle cores allow {gain:.2f} times one plain process")
    print(f"one plain process takes {best_alone.cpu / parsed:.1f} times json.loads")
    return verdict(
        [
            Bar("records of both", best.records, "==", best_alone.records),
            Bar("folded of both", best.folded, "==", best_alone.folded),
            Bar(
                "Ray pipeline, times one plain process",
                round(best_alone.seconds / best.seconds, 2),
                ">=",
                _LEAST_GAIN,
            ),
        ]
    )


def _plan(files: Sequence[Path]) -> Plan:
    return plan_inputs([str(file) for file in files], reference=_DAY, zone=_ZONE)


@dataclass(frozen=True, slots=True)
class _OwnShards:
    """The claims of one process."""

    claims: Claims = field(default_factory=lambda: Claims(CAPACITY))

    def claim(self, records: Sequence[Record]) -> Callable[[], list[str | None]]:
        """See `job.fold.folding.Shards`."""
        first = came_first(*self.claims.claim(*claimed(records)))
        return lambda: first


class _NoBoard:
    """A board nobody looks at, called as an actor is."""

    class slice_read:
        @staticmethod
        def remote(counts: Any) -> None:
            del counts


def _started(slices: int) -> tuple[Shards, Any]:
    """The actors of a run, ready to work."""
    shards, board = start_shards(slices), start_board()
    ray.get([actor.claim.remote(b"", b"") for actor in shards.actors])
    ray.get(board.slice_read.remote(SliceCounts("", 0)))
    return shards, board


def _in_this_process(intake: Intake) -> Iterable[int]:
    for number in range(len(intake.slices)):
        yield sum(block.num_rows for block in intake({"id": np.array([number])}))


def _on_ray(intake: Intake) -> Iterable[int]:
    dataset = read_everything(intake)
    if dataset is not None:
        for bundle in dataset.iter_internal_ref_bundles():
            yield bundle.num_rows() or 0


def _timed(
    plan: Plan, root: Path, read: Callable[[Intake], Iterable[int]], shards: Shards, board: Any
) -> Pace:
    root.mkdir(parents=True)
    folder = RunFolder(Place.of(root))
    folder.begin({}, overwrite=False)
    settings = CleanSettings(_DAY, _ZONE, Masker(b"benchmark" * 4))
    cleaning = {file.source: settings for file in plan.files}
    intake = Intake(plan.slices, cleaning, folder, shards, board)
    before, began = _cpu_seconds(), time.perf_counter()
    asked = sum(read(intake))
    seconds, after = time.perf_counter() - began, _cpu_seconds()
    cpu = sum(used - before.get(pid, 0.0) for pid, used in after.items())
    manifests = [counts for held in read_manifests(folder.manifests).values() for counts in held]
    records = sum(counts.records for counts in manifests)
    folded = sum(counts.folded for counts in manifests)
    if records - folded != asked:
        raise AssertionError(f"{records} records, {folded} folded, but {asked} to ask")
    return Pace(records, folded, plan.size, seconds, cpu)


def _cpu_seconds() -> dict[int, float]:
    """What this process and all that descend from it have used, by process."""
    used = {}
    for pid in process_tree(os.getpid()):
        # One may end while it is looked at.
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _parse(files: Sequence[Path]) -> float:
    """Seconds of `json.loads` over the lines of the files."""
    lines: list[str | bytes] = []
    for path in files:
        texts = path.read_bytes().splitlines()
        lines += texts if path.suffix == ".jsonl" else [json.dumps(t.decode()) for t in texts]
    began = time.process_time()
    for line in lines:
        json.loads(line)
    return time.process_time() - began
