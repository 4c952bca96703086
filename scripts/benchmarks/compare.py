"""`fupan compare` and `run --canary` against a model that gets worse from position 20 of a pack on,
and against an honest one.

The fading model answers wrongly, says that all is well, or leaves the records out. The baseline is
the same fading day without a canary. No limit is set, and the provider is ten times as fast as at
its scale: what counts here is what is found, not how long it takes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from job.report.words import Language, Words
from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results, read_json
from scripts.benchmarks.workload import Workload, fupan_command, prepare, provider_settings
from scripts.days.score import evaluate, read_predictions

_FADES_FROM = 20
_NEAR = {"wrong": 1, "normal": 3, "missing": 1}
"""By how much the position found may be beside the true one. A record that is normal anyhow says
nothing of a model whose answers fade to "normal"."""
_FASTER = 10
_LIMITS = ("--max-concurrency", "20")
_NOTICE_LINES = 6
"""Of report.md, in which the notice has to stand."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the day: how it ended, where it is, what the provider was asked."""

    code: int
    out: Path
    requests: int

    @property
    def report(self) -> Any:
        return read_json(self.out / "report.json")

    @property
    def on_top(self) -> str:
        """What stands above everything else in the report, if anything does."""
        lines = (self.out / "report.md").read_text(encoding="utf-8").splitlines()
        return " ".join(line for line in lines[:_NOTICE_LINES] if line.startswith(">"))


def _provider(workload: Workload, fades_as: str | None) -> Provider:
    fading = {} if fades_as is None else {"fades_from": _FADES_FROM, "fades_as": fades_as}
    return Provider(provider_settings(workload, rpm=None, request_burst=None, **fading))


def _compare(workload: Workload, fades_as: str | None) -> tuple[tuple[str, ...], list[Bar]]:
    """Compare both modes; a row of the table, and the bars."""
    name = fades_as or "honest"
    out = workload.folder / f"compare-{name}"
    with _provider(workload, fades_as) as provider:
        answers = out / "answers" / "answers.db"
        command = fupan_command(workload, provider.base_url, out, answers, *_LIMITS)
        command[command.index("run")] = "compare"
        ended = run_command(command, workload.folder / f"compare-{name}.log")
        requests = provider.stats()["requests"]
    if ended.exit_code not in (0, 3):
        print(ended.tail)
        return (name, "-", "-", "-", "-", str(ended.exit_code)), [
            Bar(f"{name}: exit code", ended.exit_code, "==", 3)
        ]
    found = read_json(out / "compare.json")
    sides = [found[side] for side in ("first", "second", "first_again")]
    calls = sum(side["calls"]["requests"] for side in sides)
    position = found["position"]
    row = (
        name,
        found["verdict"],
        found["reason"],
        "-" if position is None else f"{position} of {found['longest_pack']}",
        " + ".join(f"{side['calls']['requests']}" for side in sides),
        str(ended.exit_code),
    )
    bars = [
        Bar(f"{name}: exit code", ended.exit_code, "==", 0 if fades_as is None else 3),
        Bar(f"{name}: calls less those of the provider", calls - requests, "==", 0),
        Bar(f"{name}: records without two answers", _lost(found), "==", 0),
    ]
    if fades_as is None:
        bars.append(Bar(f"{name}: verdict good", found["verdict"] == "good", "==", True))
    else:
        beside = abs((position or 0) - _FADES_FROM)
        bars.append(Bar(f"{name}: positions beside the true one", beside, "<=", _NEAR[fades_as]))
    return row, bars


def _lost(found: dict[str, Any]) -> int:
    return int(found["sample"]["records"] - found["agreement"]["records"])


def _run(workload: Workload, name: str, fades_as: str | None, *more: str) -> Run:
    out = workload.folder / f"run-{name}"
    with _provider(workload, fades_as) as provider:
        answers = out.with_name(f"{out.name}-answers") / "answers.db"
        command = fupan_command(workload, provider.base_url, out, answers, *_LIMITS, *more)
        ended = run_command(command, workload.folder / f"run-{name}.log")
        if ended.exit_code != 0:
            print(ended.tail)
        return Run(ended.exit_code, out, provider.stats()["requests"])


def bars_of_run(run: Run, name: str, mode: str) -> list[Bar]:
    """The mode it went on in, whether the report says so on top and from where on packs fade, and
    that every call is told."""
    if run.code != 0:
        return [Bar(f"{name}: exit code", run.code, "==", 0)]
    report = run.report
    position = report["run"]["canary"]["position"]
    bars = []
    if mode == "single":
        beside = abs((position or 0) - _FADES_FROM)
        bars.append(Bar(f"{name}: positions beside the true one", beside, "<=", _NEAR["wrong"]))
        where = str(position) in run.on_top
        bars.append(Bar(f"{name}: position on top of the report", where, "==", True))
    said = notice_begins(report["run"]["language"]) in run.on_top
    return [
        *bars,
        Bar(f"{name}: went on in {mode} mode", report["run"]["mode"] == mode, "==", True),
        Bar(f"{name}: said on top of the report", said, "==", mode == "single"),
        Bar(
            f"{name}: calls less those of the provider",
            report["ledger"]["calls"]["requests"] - run.requests,
            "==",
            0,
        ),
    ]


def notice_begins(language: Language) -> str:
    """How the notice of a bad canary begins in a report."""
    return Words(language)("notice_canary", reason="").partition(":")[0].partition("：")[0]


def _runs(workload: Workload) -> list[Bar]:
    """The fading day without and with a canary, and the honest day with one."""
    blind = _run(workload, "fading, no canary", "wrong")
    fading = _run(workload, "fading", "wrong", "--canary", "10")
    honest = _run(workload, "honest", None, "--canary", "10")
    bars = bars_of_run(fading, "fading", "single") + bars_of_run(honest, "honest", "packed")
    if any(run.code != 0 for run in (blind, fading, honest)):
        return [*bars, Bar("exit code without a canary", blind.code, "==", 0)]
    rows = []
    for name, run in (("fading, no canary", blind), ("fading", fading), ("honest", honest)):
        wrong = evaluate(workload.truth, read_predictions(run.out)).wrong
        rows.append((name, run.report["run"]["mode"], f"{run.requests:,}", f"{wrong:,}"))
        print(f"{name}: {run.on_top or '(nothing on top of the report)'}")
    print()
    print_table(("run", "mode", "calls", "wrong outcomes"), rows)
    for run, name in ((fading, "fading"), (honest, "honest")):
        found = bars_of_results(run.out, workload.truth)
        bars += [replace(bar, what=f"{name}: {bar.what}") for bar in found]
    return bars


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    workload = replace(workload, scale=workload.scale * _FASTER)
    rows, bars = [], []
    for fades_as in ("wrong", "normal", "missing", None):
        row, found = _compare(workload, fades_as)
        rows.append(row)
        bars += found
    print_table(("model", "verdict", "reason", "from position", "calls", "exit code"), rows)
    print()
    bars += _runs(workload)
    print()
    return verdict(bars)
