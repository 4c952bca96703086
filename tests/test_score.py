"""Scoring a run against the planted truth: known tiny cases, and from a run's folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from job.records import RESULT_SCHEMA, Issue, Record, Result, results_to_table
from scripts.days import score
from scripts.days.score import Prediction, evaluate, pairwise, read_predictions
from scripts.days.truth import TrueRecord, write_truth


@pytest.mark.parametrize(
    ("truth", "predicted", "precision", "recall", "f1"),
    [
        ("aabb", "xxyy", 1, 1, 1),
        ("aabb", "xxxx", 2 / 6, 1, 0.5),
        ("aaaa", "xxyy", 1, 2 / 6, 0.5),
        ("aab", "xyx", 0, 0, 0),
        ("ab", "xy", 1, 1, 1),
    ],
)
def test_pairwise_on_known_cases(
    truth: str, predicted: str, precision: float, recall: float, f1: float
) -> None:
    result = pairwise(truth, predicted)
    assert (result.precision, result.recall, result.f1) == pytest.approx((precision, recall, f1))


def test_pairwise_lets_records_without_a_theme_stand_alone() -> None:
    assert pairwise("aaa", [None, None, None]).recall == 0
    assert pairwise("aaa", ["x", "x", None]).recall == pytest.approx(1 / 3)


def _true(position: int, outcome: str, cause: str | None) -> TrueRecord:
    return TrueRecord("app.log", position, "operation", "en", outcome, cause)  # type: ignore[arg-type]


def test_evaluation_counts_what_is_missing_wrong_and_held_by_themes() -> None:
    truth = {
        t.key: t
        for t in (
            _true(0, "problem", "a"),
            _true(1, "problem", "a"),
            _true(2, "problem", "b"),
            _true(3, "normal", None),
            _true(4, "refused", None),
            _true(5, "problem", "b"),
        )
    }
    said = {
        ("app.log", 0): Prediction("answered", "problem", "t1", ("t1", "t2")),
        ("app.log", 1): Prediction("answered", "problem", "t1", ("t1",)),
        ("app.log", 2): Prediction("answered", "normal", None),
        ("app.log", 3): Prediction("answered", "problem", "t2", ("t2",)),
        ("app.log", 4): Prediction("failed", None, None),
        ("app.log", 9): Prediction("answered", "normal", None),
    }
    result = evaluate(truth, said)
    assert (result.records, result.missing, result.unknown) == (5, 1, 1)
    assert result.wrong_outcome == {("problem", "normal"): 1, ("normal", "problem"): 1}
    assert result.pairwise.f1 == 1
    assert result.without_theme == 1
    assert [(t.theme, t.records, t.causes) for t in result.themes] == [
        ("t1", 2, {"a": 2}),
        ("t2", 2, {"a": 1}),
    ]


def _result(position: int, theme: str | None) -> Result:
    record = Record(
        f"r{position}", "somewhere/app.log", position, None, "operation", "en", "text", digest="d"
    )
    issue = Issue("event", "cause", "stated", "do it", "high", None, theme)
    return Result(record, "answered", "problem", (issue,))


def test_results_of_a_run_are_scored_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results").mkdir()
    for part, position in (("a", 0), ("b", 9)):
        table = results_to_table([_result(position, "t1")])
        pq.write_table(table, tmp_path / "results" / f"{part}.parquet")
    write_truth(tmp_path / "truth.json", [_true(0, "problem", "a"), _true(9, "problem", "b")])
    assert set(read_predictions(tmp_path)) == {("app.log", 0), ("app.log", 9)}
    arguments = [str(tmp_path), str(tmp_path / "truth.json")]
    assert score.main(arguments) == 0
    assert score.main([*arguments, "--min-f1", "0.5"]) == 1
    assert "2  t1: a 1, b 1" in capsys.readouterr().out


def test_two_results_for_one_record_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    table = pa.concat_tables([results_to_table([_result(0, "t1")])] * 2)
    assert table.schema == RESULT_SCHEMA
    pq.write_table(table, tmp_path / "results" / "a.parquet")
    with pytest.raises(ValueError, match="more than one result"):
        read_predictions(tmp_path)
