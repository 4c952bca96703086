"""Fold: groups, purity and grouping accuracy on log lines whose templates are known.

The lines of each FILE (a CSV with the columns `Content` and `EventId`, as the labelled public log
sets have them) are grouped by fupan's folding (private values as aliases, then what varies as
`<*>`), by Drain3 with its defaults, and by plain masking of hexadecimal numbers and digits.

Purity is the share of the lines that have the template most common in their group. Grouping
accuracy is the field's: the share of the lines whose group holds exactly the lines of one template.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig

from job.fold.template import template
from job.mask.masking import Masker
from scripts.benchmarks.checks import Bar, print_table, verdict

_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "loghub"
_LEAST_PURITY = 0.99
_MOST_GROUPS = 1.4
"""Times the templates."""
_PLAIN = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Grouping:
    """How well one way of grouping met the templates of one file."""

    groups: int
    purity: float
    accuracy: float
    seconds: float = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="*",
        default=sorted(_SHARED.glob("*_structured.csv")),
        metavar="FILE",
        help="labelled log sets; default: those of ../shared/data/loghub",
    )


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    rows: list[tuple[str, ...]] = []
    bars = []
    for path in args.files:
        lines, events = read_labelled(path)
        templates = len(set(events))
        found = {name: _timed(group, lines, events) for name, group in _WAYS.items()}
        for name, one in found.items():
            figures = (f"{one.purity:.4f}", f"{one.accuracy:.4f}", f"{one.seconds:.2f}")
            rows.append((f"{path.stem} {name}", f"{one.groups}/{templates}", *figures))
        mine, others = found["fupan"], [one for name, one in found.items() if name != "fupan"]
        bars += [
            Bar(f"{path.stem} purity", round(mine.purity, 4), ">=", _LEAST_PURITY),
            Bar(f"{path.stem} groups per template", mine.groups / templates, "<=", _MOST_GROUPS),
            Bar(
                f"{path.stem} accuracy, above Drain3 and plain masking",
                round(mine.accuracy, 4),
                ">=",
                round(max(one.accuracy for one in others), 4),
            ),
        ]
    print_table(("", "groups", "purity", "accuracy", "seconds"), rows)
    if not bars:
        print("no labelled log set: name one")
        return 1
    return verdict(bars)


def read_labelled(path: Path) -> tuple[list[str], list[str]]:
    """The lines of a labelled set, and the name of each one's template."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["Content"].strip() for row in rows], [row["EventId"] for row in rows]


def judge(groups: Sequence[Hashable], events: Sequence[str]) -> Grouping:
    """Compare the group of each line with its template."""
    held: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for group, event in zip(groups, events, strict=True):
        held[group][event] += 1
    true = Counter(events)
    purest = right = 0
    for counts in held.values():
        (event, most), *others = counts.most_common()
        purest += most
        right += most if not others and most == true[event] else 0
    return Grouping(len(held), purest / len(events), right / len(events))


def by_folding(lines: Sequence[str]) -> list[Hashable]:
    """Groups as `clean` makes them, of operation logs of one level."""
    masker = Masker(b"benchmark" * 4)
    return [template(masker.mask(line)[0]) for line in lines]


def by_drain(lines: Sequence[str]) -> list[Hashable]:
    """Drain3 with its defaults: the cluster each line is in when all have been read."""
    miner = TemplateMiner(config=TemplateMinerConfig())
    return [miner.add_log_message(line)["cluster_id"] for line in lines]


def by_plain_masking(lines: Sequence[str]) -> list[Hashable]:
    """Hexadecimal numbers and digits masked, nothing else."""
    return [_PLAIN.sub("#", line) for line in lines]


_WAYS: dict[str, Callable[[Sequence[str]], list[Hashable]]] = {
    "fupan": by_folding,
    "Drain3": by_drain,
    "plain masking": by_plain_masking,
}


def _timed(
    group: Callable[[Sequence[str]], list[Hashable]], lines: Sequence[str], events: Sequence[str]
) -> Grouping:
    began = time.perf_counter()
    groups = group(lines)
    seconds = time.perf_counter() - began
    judged = judge(groups, events)
    return Grouping(judged.groups, judged.purity, judged.accuracy, seconds)
