"""How well a run's results agree with the planted truth: `python -m scripts.days.score OUT TRUTH`.

Pairwise precision, recall and F1 of a grouping (as in the evaluation of clusterings by pair
counting): of all pairs of records, which are in one group here and which there. Records without a
theme stand alone. Invariant: counting is pure; only `read_predictions` and `main` touch files.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from scripts.days.truth import TrueRecord, read_truth

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a run says of a record. `theme`: that of its first issue; `themes`: of all of them."""

    via: str
    outcome: str | None
    theme: str | None
    themes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Agreement of two groupings over pairs; each figure is 1 where it would divide by zero."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class ThemeCount:
    """A theme: how many records have it, and of those that are problems the planted causes."""

    theme: str
    records: int
    causes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run against the truth. `missing`: true records the results lack; `unknown`: results the
    truth lacks; `wrong_outcome`: records whose outcome is not the true one, as (true, said)."""

    records: int
    missing: int
    unknown: int
    wrong_outcome: dict[tuple[str, str | None], int]
    pairwise: Pairwise
    themes: list[ThemeCount]
    without_theme: int

    @property
    def wrong(self) -> int:
        """Records with a wrong outcome."""
        return sum(self.wrong_outcome.values())


def _pairs(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def pairwise(truth: Sequence[Hashable], predicted: Sequence[Hashable | None]) -> Pairwise:
    """Agreement of `predicted` with `truth`, position by position; None stands alone."""
    labels: list[Hashable] = [
        ("alone", i) if label is None else ("theme", label) for i, label in enumerate(predicted)
    ]
    both = _pairs(Counter(zip(truth, labels, strict=True)).values())
    said, true = _pairs(Counter(labels).values()), _pairs(Counter(truth).values())
    precision = both / said if said else 1.0
    recall = both / true if true else 1.0
    f1 = 2 * both / (said + true) if said + true else 1.0
    return Pairwise(precision, recall, f1)


def count_themes(
    truth: Mapping[Key, TrueRecord], predictions: Mapping[Key, Prediction]
) -> list[ThemeCount]:
    """The themes of the run, the biggest first."""
    records: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = {}
    for key, prediction in predictions.items():
        cause = truth[key].cause if key in truth else None
        for theme in set(prediction.themes):
            records[theme] += 1
            if cause is not None:
                causes.setdefault(theme, Counter())[cause] += 1
    order = sorted(records, key=lambda theme: (-records[theme], theme))
    return [ThemeCount(t, records[t], dict(causes.get(t, Counter()).most_common())) for t in order]


def evaluate(truth: Mapping[Key, TrueRecord], predictions: Mapping[Key, Prediction]) -> Evaluation:
    """Compare. Outcomes are compared over all records but those no provider answers, groupings
    over those that are truly problems."""
    common = [key for key in truth if key in predictions]
    wrong: Counter[tuple[str, str | None]] = Counter()
    for key in common:
        expected, said = truth[key].outcome, predictions[key].outcome
        if expected != "refused" and said != expected:
            wrong[expected, said] += 1
    problems = [key for key in common if truth[key].outcome == "problem"]
    themes = [predictions[key].theme for key in problems]
    return Evaluation(
        records=len(common),
        missing=len(truth) - len(common),
        unknown=len(predictions) - len(common),
        wrong_outcome=dict(wrong),
        pairwise=pairwise([truth[key].cause for key in problems], themes),
        themes=count_themes(truth, predictions),
        without_theme=themes.count(None),
    )


def _prediction(row: dict[str, Any]) -> Prediction:
    issues = row["issues"] or []
    themes = tuple(issue["theme"] for issue in issues if issue["theme"] is not None)
    first = issues[0]["theme"] if issues else None
    return Prediction(row["via"], row["outcome"], first, themes)


def read_predictions(out: Path) -> dict[Key, Prediction]:
    """The results of the run in the folder `out`, by file name and position.

    Raises ValueError where two results are about the same record.
    """
    columns = ["source", "position", "via", "outcome", "issues"]
    rows = ds.dataset(out / "results", format="parquet").to_table(columns=columns).to_pylist()
    predictions = {(Path(row["source"]).name, row["position"]): _prediction(row) for row in rows}
    if len(predictions) != len(rows):
        raise ValueError(f"{len(rows) - len(predictions)} records have more than one result")
    return predictions


def describe(evaluation: Evaluation, top: int = 15) -> str:
    """The evaluation in a few lines; the `top` biggest themes with what they hold."""
    pairs, wrong = evaluation.pairwise, evaluation.wrong_outcome.items()
    lines = [
        f"records {evaluation.records}, missing {evaluation.missing}, not in the truth"
        f" {evaluation.unknown}",
        f"outcome right {evaluation.records - evaluation.wrong} of {evaluation.records}",
        *(f"  {true} said to be {said}: {n}" for (true, said), n in wrong),
        f"themes: pairwise F1 {pairs.f1:.3f} (precision {pairs.precision:.3f},"
        f" recall {pairs.recall:.3f}), problems without a theme {evaluation.without_theme}",
    ]
    for theme in evaluation.themes[:top]:
        held = ", ".join(f"{cause} {n}" for cause, n in theme.causes.items()) or "no planted cause"
        lines.append(f"  {theme.records:5d}  {theme.theme}: {held}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; exit code 1 where the F1 is below `--min-f1`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder a run wrote")
    parser.add_argument("truth", type=Path, help="the truth file of the day")
    parser.add_argument("--min-f1", type=float, default=0.0, help="pairwise F1 to reach")
    args = parser.parse_args(arguments)
    evaluation = evaluate(read_truth(args.truth), read_predictions(args.out))
    print(describe(evaluation))
    return int(evaluation.pairwise.f1 < args.min_f1)


if __name__ == "__main__":
    raise SystemExit(main())
