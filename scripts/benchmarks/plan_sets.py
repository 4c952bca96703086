"""The inputs of `bench plan` and what is true of them: a made day, and real ones where they are.

Invariant: what the provider is to answer is known without fupan: it comes from who made the day, or
was written by hand (`truths/`) from the texts and, for the reviews, from their annotators' labels.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from scripts.days.seed_day import write_seed_day
from serve.simulated import load_truth
from serve.simulated_truth import Truth

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Public files that are no part of the project; sets that are not there are skipped."""
SETS = 4
"""With all of them at hand."""
_TRUTHS = Path(__file__).parent / "truths"
_BEGINNING, _KNOWN_BY = 80, 20
"""Of the first so many characters of a review, those by which the provider knows it again."""
_ASPECTS_TOLD = 3
"""Problems of one review that are told, as the instructions ask."""
_PRAISED_FROM = 4.0
"""Stars from which a review without a complaint is praise."""


@dataclass(frozen=True, slots=True)
class PlanSet:
    """`first` and `second`: the inputs of the two runs; `flags` of both commands; `again`: flags of
    the second run. `truth`: what the provider answers."""

    name: str
    first: tuple[Path, ...]
    second: tuple[Path, ...]
    truth: Truth
    flags: tuple[str, ...] = ()
    again: tuple[str, ...] = ()


def plan_sets(folder: Path, records: int, seed: int) -> list[PlanSet]:
    """The sets that are at hand; the made day is written into `folder`."""
    return [_seed_day(folder, records, seed), *_real_sets(folder)]


def _seed_day(folder: Path, records: int, seed: int) -> PlanSet:
    days = [folder / f"day-{n}" for n in (seed, seed + 1)]
    for day, number in zip(days, (seed, seed + 1), strict=True):
        write_seed_day(day, number, records)
    first, second = ((day / "input",) for day in days)
    return PlanSet(f"seed day, {records:,}", first, second, load_truth(days[0] / "provider.json"))


def _real_sets(folder: Path) -> list[PlanSet]:
    hadoop = SHARED / "loghub" / "Hadoop_2k.log"
    talks = SHARED / "kdconv" / "travel_test.json"
    reviews = [SHARED / "asap" / f"{part}_sample.csv" for part in ("train", "dev", "test")]
    found = []
    if hadoop.exists():
        truth = load_truth(_TRUTHS / "hadoop.json")
        halves = halves_of_lines(hadoop, folder)
        found.append(PlanSet("Hadoop_2k", *halves, truth, again=("--fresh",)))
    if _there(reviews):
        truth = reviews_truth(reviews)
        first, second = tuple(reviews[:2]), tuple(reviews[1:])
        found.append(PlanSet("asap reviews", first, second, truth, again=("--fresh",)))
    if talks.exists():
        truth = load_truth(_TRUTHS / "kdconv.json")
        halves = halves_of_list(talks, folder)
        found.append(PlanSet("kdconv talks", *halves, truth, again=("--fresh",)))
    return found


def halves_of_lines(path: Path, folder: Path) -> tuple[tuple[Path], tuple[Path]]:
    """Every other line of `path` in two files: alike, but no line is in both."""
    lines = path.read_bytes().splitlines(keepends=True)
    return _halves(path, folder, [b"".join(lines[at::2]) for at in (0, 1)])


def halves_of_list(path: Path, folder: Path) -> tuple[tuple[Path], tuple[Path]]:
    """The same of the entries of a JSON list."""
    entries = orjson.loads(path.read_bytes())
    return _halves(path, folder, [orjson.dumps(entries[at::2]) for at in (0, 1)])


def _halves(path: Path, folder: Path, contents: Sequence[bytes]) -> tuple[tuple[Path], tuple[Path]]:
    first, second = (folder / f"{path.stem}-{n}{path.suffix}" for n in (1, 2))
    for part, content in zip((first, second), contents, strict=True):
        part.write_bytes(content)
    return (first,), (second,)


def _there(paths: Sequence[Path]) -> bool:
    return all(path.exists() for path in paths)


def _phrase(review: str) -> str:
    """The longest run of characters without a space near the beginning of a review."""
    return max(review[:_BEGINNING].split(), key=len)[:_KNOWN_BY]


def reviews_truth(paths: Sequence[Path]) -> Truth:
    """What the annotators found in each review: the aspects they marked as bad are its problems,
    a review of many stars with none is praise."""
    told: dict[str, Any] = orjson.loads((_TRUTHS / "asap.json").read_bytes())
    beginnings: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                bad = [aspect for aspect in told["aspects"] if row[aspect] == "-1"]
                praised = not bad and float(row["star"]) >= _PRAISED_FROM
                for name in bad[:_ASPECTS_TOLD] or ["praise"] * praised:
                    beginnings[name].append(_phrase(row["reviewbody"]))
    causes = [
        {"name": name, "phrases": beginnings[name], **said}
        for name, said in told["aspects"].items()
        if beginnings[name]
    ]
    praise = {"name": "praise", "outcome": "positive", "answers": told["praise"]}
    causes.append(praise | {"phrases": beginnings["praise"]})
    return Truth.model_validate({"causes": causes})
