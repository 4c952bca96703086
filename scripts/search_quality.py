"""How well a search finds what happened on the sample day, by words, by meaning and by both.

    fupan run docs/sample-day --out retro/sample-day --provider extractive --timezone Asia/Shanghai
    python -m scripts.search_quality retro/sample-day

Fifty questions, half of them Chinese, in other words than the records have
(tests/serve/data/search_questions.jsonl), each about one planted cause. A right answer is a record
of that cause, an issue of such a record, or a theme most of whose records are of it, as
docs/sample-day-truth.json says. Told is the mean reciprocal rank of the first right one of ten.

How much words weigh beside the meaning is a choice by such questions. What that is worth is told by
"held out": for the questions of each cause the weight is the one of a grid that is best for the
questions of all others (those of one cause say the same in other words, so they stay together).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import orjson
import pyarrow.parquet as pq

from scripts.days.truth import read_truth
from serve.search.catalog import Catalog
from serve.search.documents import WHATS
from serve.search.indexer import Indexer
from serve.search.own_encoder import OwnEncoder
from serve.search.query import read_query
from serve.search.settings import EVERYBODY, RunsSettings
from serve.search.snapshot import Snapshot
from serve.search.view import MOST_WEIGHT, POWER, Found, View, join, weight_of

_ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = _ROOT / "tests" / "serve" / "data" / "search_questions.jsonl"
TRUTH = _ROOT / "docs" / "sample-day-truth.json"
HITS = 10
BOTH = ("words", "meaning")
Cell = tuple[float, float]
"""A way to weigh words: `most` and `power` of `serve.search.view.weight_of`."""
DEFAULT: Cell = (MOST_WEIGHT, POWER)
GRID: tuple[Cell, ...] = tuple(
    (most, power)
    for most in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    for power in (0.0, 1.0, 2.0, 3.0)
)
_SECONDS = 600.0


def read_questions() -> list[dict[str, str]]:
    """`question`, `lang` and `cause` of each."""
    return [orjson.loads(line) for line in QUESTIONS.read_bytes().splitlines()]


def causes_of(run: Path) -> tuple[dict[str, str | None], dict[str, str]]:
    """The cause of each record of a run by its id, and of each theme by most of its records."""
    truth = {key: each.cause for key, each in read_truth(TRUTH).items()}
    rows = pq.read_table(
        run / "results", columns=["id", "source", "position", "issues"]
    ).to_pylist()
    records = {row["id"]: truth.get((Path(row["source"]).name, row["position"])) for row in rows}
    themes: dict[str, Counter[str]] = {}
    for row in rows:
        for issue in row["issues"]:
            themes.setdefault(issue["theme"], Counter())[records[row["id"]] or ""] += 1
    return records, {theme: counts.most_common(1)[0][0] for theme, counts in themes.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. `lists`: what words and meaning found of it, by keys, best first; `share`: see
    `serve.search.view.Lists`; `right`: the keys of right answers."""

    lang: str
    cause: str
    lists: Mapping[str, Sequence[int]]
    share: float
    right: frozenset[int]

    def reciprocal_rank(self, names: Collection[str], cell: Cell = DEFAULT) -> float:
        """Of the first right answer of ten, by some of the lists."""
        lists = {name: self.lists[name] for name in names}
        weights = {"words": weight_of(self.share, *cell)} if len(lists) > 1 else {}
        for rank, (key, _, _) in enumerate(join(lists, weights)[:HITS], start=1):
            if key in self.right:
                return 1 / rank
        return 0.0


async def ask(run: Path, state: Path) -> list[Asked]:
    """Make the index of a run in `state`, and ask it all questions."""
    records, themes = causes_of(run)
    encoder = OwnEncoder()
    indexer = Indexer([RunsSettings(path=str(run))], state, encoder)
    indexer.look()
    while await indexer.embed(_SECONDS):
        pass
    catalog = Catalog.read(state)
    if catalog is None or not catalog.runs:
        raise SystemExit(f"no run of the sample day in {run}")
    view = Snapshot.load(state, catalog).view(EVERYBODY)
    asked = []
    for each in read_questions():
        query = read_query({"query": each["question"], "limit": HITS})
        vector = (await encoder.encode([query.text], _SECONDS)).vectors[0]
        lists = view.lists(query, vector)
        right = frozenset(
            key
            for key in {key for keys in lists.found.values() for key in keys}
            if _cause(view, view.found(key, 0, {}, lists), records, themes) == each["cause"]
        )
        asked.append(Asked(each["lang"], each["cause"], lists.found, lists.share, right))
    encoder.close()
    return asked


def _cause(
    view: View, found: Found, records: Mapping[str, str | None], themes: Mapping[str, str]
) -> str | None:
    """What an answer is about."""
    segment = view.segments[found.run]
    id_ = str(segment.documents["id"][found.document].as_py())
    is_theme = WHATS[segment.column("what")[found.document]] == "theme"
    return themes.get(id_) if is_theme else records.get(id_)


def held_out(asked: Sequence[Asked]) -> tuple[list[float], Counter[Cell]]:
    """The reciprocal rank of each question by both, words weighed as is best for the questions of
    all other causes; and how often each weighing was chosen. Pure."""
    table = {cell: [each.reciprocal_rank(BOTH, cell) for each in asked] for cell in GRID}
    found = [0.0] * len(asked)
    chosen: Counter[Cell] = Counter()
    for cause in dict.fromkeys(each.cause for each in asked):
        inside = [each.cause == cause for each in asked]

        def others(cell: Cell, inside: Sequence[bool] = inside) -> float:
            return sum(rank for rank, left in zip(table[cell], inside, strict=True) if not left)

        best = max(GRID, key=others)  # of equals the first
        chosen[best] += 1
        for number in (n for n, left in enumerate(inside) if left):
            found[number] = table[best][number]
    return found, chosen


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of the sample day")
    parser.add_argument("--state", type=Path, help="keep the index here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fupan-search-") as folder:
        asked = asyncio.run(ask(args.run, args.state or Path(folder)))
    rows = {
        mode: [each.reciprocal_rank(names, DEFAULT) for each in asked]
        for mode, names in (("both", BOTH), ("words", BOTH[:1]), ("meaning", BOTH[1:]))
    }
    rows["both, held out"], chosen = held_out(asked)
    print("mean reciprocal rank   en (25)   zh (25)   all (50)")
    for name, ranks in rows.items():
        means = [
            mean(rank for rank, each in zip(ranks, asked, strict=True) if each.lang in langs)
            for langs in (("en",), ("zh",), ("en", "zh"))
        ]
        print(f"{name:20} {means[0]:9.3f} {means[1]:9.3f} {means[2]:10.3f}")
    best = sorted(GRID, key=lambda cell: -_both(asked, cell))[:5]
    print(f"words weigh MOST * share**POWER: {DEFAULT} gives {_both(asked, DEFAULT):.3f}")
    print("best in hindsight:", *(f"{cell} {_both(asked, cell):.3f}" for cell in best), sep="  ")
    print("chosen without the questions of a cause:", *chosen.most_common(), sep="  ")


def _both(asked: Sequence[Asked], cell: Cell) -> float:
    return mean(each.reciprocal_rank(BOTH, cell) for each in asked)


if __name__ == "__main__":
    main()
