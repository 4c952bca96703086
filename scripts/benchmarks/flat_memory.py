"""Flat memory: ten times the lines, hardly more memory, by the built-in analyst.

Four inputs of plain log lines, few and many, once repeating and once all distinct (after masking
too, and their problems as well), each by `fupan run` in a process of its own. Counted is the peak
of what all its processes hold together (proportional set size), without the object store, which
has a fixed size.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import Finished, run_command
from scripts.benchmarks.memory import Look
from scripts.benchmarks.quality import ledger_errors, read_json

_MOST_GROWTH = 1.3
_FEWER = 10
"""The few lines are a tenth of the many."""
_SHARE = 0.04
"""Of the lines tell of a problem."""
_HEADER = ("", "lines", "MB", "peak MiB", "with store", "at s", "seconds", "lines/s", "problems")
_SYLLABLES = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ar", "en")]
_SERVICES = ("orders", "payments", "search", "inventory", "mailer", "gateway", "reports", "login")

_NORMAL = (
    "accepted request {n} from 10.0.{b}.{c} in {ms} ms",
    "stored order {n} of user u{n} with {b} items",
    "cache refreshed, {n} entries, {ms} ms",
    "sent mail {n} to queue {b}",
    "session {n} opened by user u{n}",
    "session {n} closed after {ms} s",
    "index segment {n} merged with {b} others",
    "heartbeat {n} ok, load {b}.{c}",
    "lease {n} renewed for {ms} s",
    "report {n} rendered, {b} pages",
)
_BAD = (
    "charge of order {n} failed: the bank did not answer within {ms} ms",
    "cannot write segment {n}: no space left on device",
    "connection to 10.0.{b}.{c} refused while sending mail {n}",
    "login of user u{n} rejected: token expired {ms} s ago",
    "report {n} failed: division by zero in column {b}",
    "lease {n} lost because the clock went back {ms} ms",
)

Sentence = Callable[[random.Random, bool], str]


def repeating(rng: random.Random, bad: bool) -> str:
    """One of few sentences with ever other numbers."""
    return rng.choice(_BAD if bad else _NORMAL).format(
        n=rng.randrange(10**7), b=rng.randrange(99), c=rng.randrange(99), ms=rng.randrange(9000)
    )


def distinct(rng: random.Random, bad: bool) -> str:
    """Words that were never seen together; of a problem too."""
    words = [_word(rng) for _ in range(10)]
    if bad:
        return f"{words[0]} {words[1]} failed to {' '.join(words[2:5])}: {' '.join(words[5:])}"
    return " ".join(words)


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.choice((2, 3, 3, 4))))


def log_lines(lines: int, sentence: Sentence, seed: int, share: float) -> Iterator[str]:
    """A log of one day, `share` of whose lines tell of a problem."""
    rng = random.Random(seed)
    step = timedelta(days=1) / (lines + 1)
    time = datetime(2026, 3, 11)
    for _ in range(lines):
        bad = rng.random() < share
        level = "ERROR" if bad else "INFO"
        service = rng.choice(_SERVICES)
        time += step
        yield f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d} {level} {service}: " + (
            sentence(rng, bad) + "\n"
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run took."""

    lines: int
    input_bytes: int
    finished: Finished
    out: Path

    @property
    def peak(self) -> int:
        """Bytes the processes held at most, without the object store."""
        return self.finished.highest.own

    def row(self, name: str) -> tuple[str, ...]:
        """As a row of the table."""
        report = read_json(self.out / "report.json") if self.finished.exit_code == 0 else None
        seconds = self.finished.seconds
        return (
            name,
            f"{self.lines:,}",
            f"{self.input_bytes / 1e6:,.0f}",
            f"{self.peak / 2**20:,.0f}",
            f"{self.finished.peak_memory / 2**20:,.0f}",
            f"{self.finished.highest.seconds:,.0f}",
            f"{seconds:,.1f}",
            f"{self.lines / seconds:,.0f}",
            f"{report['problems']['records']:,}" if report else "-",
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the bigger inputs")
    parser.add_argument("--problems", type=float, default=_SHARE, help="share of problem lines")
    parser.add_argument("--only", choices=("repeating", "distinct"), help="one of the two kinds")


def _measure(folder: Path, name: str, lines: int, text: Iterator[str]) -> Measured:
    source, out = folder / f"{name}-{lines}.log", folder / f"{name}-{lines}"
    with source.open("w") as file:
        file.writelines(text)
    command = [
        *(sys.executable, "-m", "job", "run", str(source), "--out", str(out)),
        *("--provider", "extractive", "--answers", str(folder / "answers.db"), "--quiet"),
    ]
    finished = run_command(command, folder / f"{name}-{lines}.txt")
    if finished.exit_code:
        print(finished.tail)
    return Measured(lines, source.stat().st_size, finished, out)


def _bars(name: str, few: Measured, many: Measured) -> list[Bar]:
    growth = round(many.peak / few.peak, 3)
    bars = [Bar(f"{name}: memory of ten times the lines", growth, "<=", _MOST_GROWTH)]
    for each in (few, many):
        bars.append(Bar(f"{name}, {each.lines:,}: exit code", each.finished.exit_code, "==", 0))
        if each.finished.exit_code == 0:
            ledger: dict[str, Any] = read_json(each.out / "ledger.json")
            read = ledger["read"] if not ledger_errors(ledger) else -1
            bars.append(Bar(f"{name}, {each.lines:,}: lines accounted for", read, "==", each.lines))
    return bars


def _breakdown(look: Look) -> list[tuple[str, str]]:
    """The processes of a look, like ones together, the greatest first."""
    held: dict[str, list[int]] = {}
    for name, each in look.held:
        held.setdefault(name, []).append(each.own)
    rows = sorted(held.items(), key=lambda item: -sum(item[1]))
    return [(f"  {len(own)} x {name}", f"{sum(own) / 2**20:,.0f}") for name, own in rows]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    kinds: dict[str, Sentence] = {"repeating": repeating, "distinct": distinct}
    rows: list[Sequence[str]] = []
    bars: list[Bar] = []
    for name, sentence in kinds.items():
        if args.only in (None, name):
            few, many = (
                _measure(
                    args.folder, name, lines, log_lines(lines, sentence, args.seed, args.problems)
                )
                for lines in (args.lines // _FEWER, args.lines)
            )
            rows += [few.row(name), many.row(name)]
            bars += _bars(name, few, many)
            for each in (few, many):
                print_table(
                    (f"{name}, {each.lines:,} lines: at the peak", "MiB"),
                    _breakdown(each.finished.highest),
                )
    print_table(_HEADER, rows)
    return verdict(bars)
