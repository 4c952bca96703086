"""How well a search finds what happened on the sample day, by words, by meaning and by both.

    fupan run docs/sample-day --out retro/sample-day --provider extractive --timezone Asia/Shanghai
    python -m scripts.search_quality retro/sample-day

Fifty questions, half of them Chinese, in other words than the records have
(tests/serve/data/search_questions.jsonl), each about one planted cause. A right answer is a record
of that cause, an issue of such a record, or a theme most of whose records are of it, as
docs/sample-day-truth.json says. Told is the mean reciprocal rank of the first right one of ten.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from scripts.days.truth import read_truth
from serve.search.indexer import Indexer
from serve.search.own_encoder import OwnEncoder
from serve.search.query import MODES
from serve.search.server import SearchServer
from serve.search.settings import RunsSettings

_ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = _ROOT / "tests" / "serve" / "data" / "search_questions.jsonl"
TRUTH = _ROOT / "docs" / "sample-day-truth.json"
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


async def measure(run: Path, state: Path) -> dict[tuple[str, str], list[float]]:
    """The reciprocal ranks by mode and language."""
    records, themes = causes_of(run)
    encoder = OwnEncoder()
    indexer = Indexer([RunsSettings(path=str(run))], state, encoder)
    indexer.look()
    while await indexer.embed(_SECONDS):
        pass
    server = SearchServer(state, encoder)
    await server.refresh()
    found: dict[tuple[str, str], list[float]] = {}
    for each in read_questions():
        for mode in MODES:
            body = {"query": each["question"], "mode": mode, "limit": 10}
            hits = orjson.loads(await server.search("", body, _SECONDS))["hits"]
            rank = _first_right(hits, each["cause"], records, themes)
            found.setdefault((mode, each["lang"]), []).append(1 / rank if rank else 0.0)
    await server.aclose()
    return found


def _first_right(
    hits: list[dict[str, Any]], cause: str, records: dict[str, str | None], themes: dict[str, str]
) -> int | None:
    for rank, hit in enumerate(hits, start=1):
        of = themes.get(hit["id"]) if hit["object"] == "theme" else records.get(hit["id"])
        if of == cause:
            return rank
    return None


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of the sample day")
    parser.add_argument("--state", type=Path, help="keep the index here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fupan-search-") as folder:
        found = asyncio.run(measure(args.run, args.state or Path(folder)))
    print("mean reciprocal rank   en (25)   zh (25)   all (50)")
    for mode in MODES:
        en, zh = found[mode, "en"], found[mode, "zh"]
        means = [sum(each) / len(each) for each in (en, zh, en + zh)]
        print(f"{mode:20} {means[0]:9.3f} {means[1]:9.3f} {means[2]:10.3f}")


if __name__ == "__main__":
    main()
