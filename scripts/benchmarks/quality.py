"""Whether what a run left is right: every record, the themes, the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from scripts.benchmarks.checks import Bar
from scripts.days.score import Evaluation, Key, evaluate, read_predictions
from scripts.days.truth import TrueRecord

LEAST_F1 = 0.95


def theme_count_errors(report: Mapping[str, Any], evaluation: Evaluation) -> int:
    """Themes of the report whose number of records is not the number of results that hold them."""
    held = {theme.theme: theme.records for theme in evaluation.themes}
    return sum(theme["records"] != held.get(theme["id"]) for theme in report["themes"])


def ledger_errors(ledger: Mapping[str, Any]) -> int:
    """How many of the two equations of the ledger do not hold."""
    vias = ("answered", "recalled", "folded", "review", "failed", "unasked")
    left: bool = ledger["read"] != ledger["records"] + ledger["rejected"] + ledger["skipped"]
    right: bool = ledger["records"] != sum(ledger[via] for via in vias)
    return int(left) + int(right)


def read_json(path: Path) -> Any:
    """A JSON file's value."""
    return orjson.loads(path.read_bytes())


def bars_of_results(out: Path, truth: Mapping[Key, TrueRecord]) -> list[Bar]:
    """Nothing lost, every outcome right, themes as planted, counts exact, the ledger balanced."""
    evaluation = evaluate(truth, read_predictions(out))
    errors = theme_count_errors(read_json(out / "report.json"), evaluation)
    return [
        Bar("records without a result", evaluation.missing, "==", 0),
        Bar("results without a record", evaluation.unknown, "==", 0),
        Bar("records with a wrong outcome", evaluation.wrong, "==", 0),
        Bar("pairwise F1 of themes", round(evaluation.pairwise.f1, 4), ">=", LEAST_F1),
        Bar("themes with a wrong count", errors, "==", 0),
        Bar(
            "equations of the ledger that fail",
            ledger_errors(read_json(out / "ledger.json")),
            "==",
            0,
        ),
    ]


def failed_keys(out: Path) -> list[Key]:
    """The records in failed.jsonl."""
    lines = (out / "failed.jsonl").read_bytes().splitlines()
    rows: Sequence[dict[str, Any]] = [orjson.loads(line) for line in lines]
    return [(Path(row["source"]).name, row["position"]) for row in rows]
