"""Plan against actual: what `fupan plan` foretells of four sets, and what `fupan run` then takes.

The seed day, and three real sets where they are at hand; each is planned and run twice under 60
requests a minute with a burst of 60. The first time nothing is known of the model, the second time
what the first run has learned, about other records: another seed day, the other lines of the log
and the other talks, reviews of which half are others. Seconds are those of the clock, whatever
--scale says: a plan foretells these.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.plan_sets import SETS, PlanSet, plan_sets
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.workload import BURST, CONTEXT, KEY_VARIABLE, MODEL, RPM, environment
from serve.simulated import Settings

_ROOT = Path(__file__).resolve().parents[2]
_PLAN_SECONDS = 600.0
_HEADER = ("", "foretold", "actual", "ratio", "range", "within")
_WITHIN = {1: {"tokens": 0.10, "minutes": 0.20}, 2: {"tokens": 0.05, "minutes": 0.10}}
"""How far plan and actual may lie apart in the first run and in the second."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a plan foretold, and what it was. `low`, `high`: the range that was told."""

    name: str
    foretold: float
    actual: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """Foretold over actual; 0 where nothing was."""
        return self.foretold / self.actual if self.actual else 0.0

    @property
    def row(self) -> tuple[str, ...]:
        """As it is printed."""
        digits = 2 if "minutes" in self.name else 0
        told = [f"{value:,.{digits}f}" for value in (self.foretold, self.actual)]
        between = f"{self.low:,.{digits}f}-{self.high:,.{digits}f}"
        inside = "yes" if self.low <= self.actual <= self.high else "no"
        return (f"  {self.name}", *told, f"{self.ratio:.3f}", between, inside)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--only", metavar="WORDS", help="sets whose name holds these words")


def numbers_of(
    plan: dict[str, Any], ledger: dict[str, Any], timing: dict[str, Any]
) -> list[Number]:
    """What `plan --json` foretold beside what the run's own files say it took."""
    calls, ranges = ledger["calls"], plan["ranges"]
    asking = timing["calls_s"] + timing["naming_calls_s"]
    tokens = [ranges["tokens_in"][end] + ranges["tokens_out"][end] for end in (0, 1)]
    return [
        Number("calls", plan["calls"], calls["requests"], plan["calls"], plan["calls"]),
        Number("tokens in", plan["tokens_in"], calls["tokens_in"], *ranges["tokens_in"]),
        Number("tokens out", plan["tokens_out"], calls["tokens_out"], *ranges["tokens_out"]),
        Number(
            "tokens",
            plan["tokens_in"] + plan["tokens_out"],
            calls["tokens_in"] + calls["tokens_out"],
            *tokens,
        ),
        Number(
            "minutes with calls", plan["asking_minutes"], asking / 60, *ranges["asking_minutes"]
        ),
        Number("minutes", plan["minutes"], timing["wall_s"] / 60, *ranges["minutes"]),
    ]


def bars_of(name: str, turn: int, numbers: Sequence[Number]) -> list[Bar]:
    """How far apart foretold and actual may lie."""
    within = _WITHIN[turn]
    return [
        Bar(
            f"{name}, run {turn}: {number.name} off by",
            round(abs(number.ratio - 1), 3),
            "<=",
            within["tokens" if number.name == "tokens" else "minutes"],
        )
        for number in numbers
        if number.name in ("tokens", "minutes with calls", "minutes")
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    bars: list[Bar] = []
    rows: list[tuple[str, ...]] = []
    sets = plan_sets(args.folder, args.records, args.seed)
    wanted = [one for one in sets if args.only is None or args.only in one.name]
    if not wanted:
        names = ", ".join(one.name for one in sets)
        print(f"--only {args.only}: no set has this in its name; there are: {names}")
        return 2
    if args.only is None:
        bars.append(Bar("sets compared", len(wanted), "==", SETS))
    for one in wanted:
        _both_runs(one, args.folder / one.name.replace(" ", "-"), rows, bars)
    print_table(_HEADER, rows)
    return verdict(bars)


def _both_runs(one: PlanSet, folder: Path, rows: list[tuple[str, ...]], bars: list[Bar]) -> None:
    folder.mkdir()
    settings = Settings.model_validate(
        {
            "models": (MODEL,),
            "context": CONTEXT,
            "truth": one.truth,
            "rpm": RPM,
            "request_burst": BURST,
        }
    )
    port = 0
    for turn, inputs in enumerate((one.first, one.second), 1):
        # The same port: what was learned belongs to a URL. A fresh one: its bucket is full.
        with Provider(settings, port) as provider:
            port = int(provider.base_url.rpartition(":")[2].partition("/")[0])
            told = [
                *map(str, inputs),
                *("--base-url", provider.base_url, "--model", MODEL),
                *("--api-key-env", KEY_VARIABLE, "--rpm", str(RPM), "--burst", str(BURST)),
                *("--context", str(CONTEXT), "--answers", str(folder / "answers.db")),
                *(one.again if turn == 2 else ()),
            ]
            plan = _plan(told)
            out = folder / f"out-{turn}"
            command = [sys.executable, "-m", "job", "run", *told, "--out", str(out), "--quiet"]
            finished = run_command(command, folder / f"run-{turn}.log")
        if finished.exit_code != 0:
            print(finished.tail)
            bars.append(Bar(f"{one.name}, run {turn}: exit code", finished.exit_code, "==", 0))
            return
        files = [orjson.loads((out / f"{n}.json").read_bytes()) for n in ("ledger", "timing")]
        numbers = numbers_of(plan, *files)
        basis = f"from {plan['earlier_runs']} earlier runs" if plan["earlier_runs"] else "a guess"
        rows.append((f"{one.name}, run {turn}, {basis}", *[""] * (len(_HEADER) - 1)))
        rows.extend(number.row for number in numbers)
        bars += bars_of(one.name, turn, numbers)


def _plan(told: Sequence[str]) -> dict[str, Any]:
    """What `fupan plan --json` says. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "job", "plan", *told, "--json"]
    said = subprocess.run(
        command,
        cwd=_ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=_PLAN_SECONDS,
        check=True,
    )
    return dict(orjson.loads(said.stdout))
