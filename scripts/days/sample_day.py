"""Writes the sample day that ships with the project: `python -m scripts.days.sample_day`.

About 300 records, some of which say the same (the shift's health checks, a burst of one error), so
that folding has something to do; the truth about them lies beside the input, not in it.
"""

from __future__ import annotations

import argparse
import random
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from scripts.days.compose import Entry
from scripts.days.day import make_day, plan_day
from scripts.days.files import write_day
from scripts.days.truth import write_truth

_DOCS = Path(__file__).resolve().parents[2] / "docs"
_SEED = 20260310
_RECORDS = 280
_LEAST = 3
"""Records of the rarest cause."""
_REPEATED = 20
"""Log entries that appear once more a few minutes later."""
_LONG_SHARE = 0.01
_TRACE = re.compile(r"trace=\w+")


def _repeat(rng: random.Random, entries: list[Entry]) -> list[Entry]:
    logs = [entry for entry in entries if entry.kind == "operation" and entry.time.hour < 23]
    again = []
    for entry in rng.sample(logs, _REPEATED):
        text = _TRACE.sub(f"trace={rng.getrandbits(64):016x}", entry.text)
        later = entry.time + timedelta(seconds=rng.randint(20, 1500))
        again.append(replace(entry, text=text, time=later))
    return sorted([*entries, *again], key=lambda entry: entry.time)


def write_sample_day(docs: Path) -> None:
    """Write `sample-day/` and `sample-day-truth.json` into `docs`; the same bytes every time."""
    rng = random.Random(_SEED)
    entries = make_day(rng, plan_day(rng, _RECORDS, _LEAST), _LONG_SHARE, set())
    truth = write_day(docs / "sample-day", _repeat(rng, entries))
    write_truth(docs / "sample-day-truth.json", truth)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=_DOCS, help="folder to write into")
    write_sample_day(parser.parse_args().docs)


if __name__ == "__main__":
    main()
