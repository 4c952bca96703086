"""Writes a big day for the benchmarks: `python -m scripts.days.seed_day OUT_DIR`.

OUT_DIR/input holds the three files, OUT_DIR/truth.json what is true of each record and
OUT_DIR/provider.json what the simulated provider is to answer. No two records consist of the same
words, so nothing folds; about 130 tokens a record on average, 4 % have 600 to 1,500.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from scripts.days.compose import Entry
from scripts.days.day import make_day, make_poison, plan_day
from scripts.days.files import write_day
from scripts.days.provider import write_provider_truth
from scripts.days.truth import TrueRecord, write_truth

LONG_SHARE = 0.04
_LEAST = 2


def make_seed_day(seed: int, records: int, poison: int) -> list[Entry]:
    """The records of the day in order of time, `poison` of them with the phrase that is refused."""
    rng = random.Random(seed)
    taken: set[str] = set()
    plan = plan_day(rng, records - poison, _LEAST)
    entries = make_day(rng, plan, LONG_SHARE, taken)
    return sorted([*entries, *make_poison(rng, poison, taken)], key=lambda entry: entry.time)


def write_seed_day(
    folder: Path, seed: int = 1, records: int = 3000, poison: int = 0
) -> list[TrueRecord]:
    """Write the day and what belongs to it into `folder`; returns the truth."""
    truth = write_day(folder / "input", make_seed_day(seed, records, poison))
    write_truth(folder / "truth.json", truth)
    write_provider_truth(folder / "provider.json")
    return truth


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="OUT_DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=3000, help="all records, poison included")
    parser.add_argument("--poison", type=int, default=0, help="records that no provider answers")
    args = parser.parse_args(arguments)
    write_seed_day(args.folder, args.seed, args.records, args.poison)


if __name__ == "__main__":
    main()
