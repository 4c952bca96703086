"""Result files with the themes of their issues filled in, and the lists beside them."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job import write
from job.finish import finish_results, write_outcomes
from job.records import (
    OUTCOMES,
    RESULT_SCHEMA,
    Issue,
    Result,
    Via,
    results_to_table,
    table_to_results,
)
from job.run_folder import RunFolder
from job.storage.place import Place
from job.themes.groups import ThemeText, digest
from job.themes.index import ThemeIndex
from job.write import read_tables, write_table
from tests.job.make import record

THEMES = {
    ("problem", "late"): "t-late",
    ("problem", "lost"): "t-lost",
    ("positive", "late"): "t-praise",
}
INDEX = ThemeIndex(
    {
        digest(ThemeText(event, None, outcome == "positive")): theme
        for (outcome, event), theme in THEMES.items()
    }
)
ISSUES = st.lists(
    st.builds(
        lambda event, severity: Issue(event, None, "stated", None, severity, None),
        st.sampled_from(["late", "lost", "odd"]),
        st.sampled_from(["low", "high"]),
    ),
    max_size=3,
)
RESULTS = st.lists(st.tuples(st.sampled_from([*OUTCOMES, None]), ISSUES), max_size=20)


@settings(max_examples=15)
@given(RESULTS, st.integers(1, 3))
def test_issues_get_their_themes_and_nothing_else_changes(
    drawn: list[tuple[str | None, list[Issue]]], files: int
) -> None:
    before = [
        Result(record(f"{n}"), "answered", outcome, tuple(issues))  # type: ignore[arg-type]
        for n, (outcome, issues) in enumerate(drawn)
    ]
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "ROWS_A_GROUP", 3)
        folder = RunFolder(Place.of(path))
        unfinished = [folder.asked / f"{n}.parquet" for n in range(files)]
        for n, place in enumerate(unfinished):
            write_table(place, [results_to_table(before[n::files])], RESULT_SCHEMA)
        tally = finish_results(folder, unfinished, INDEX)
        after = {
            result.record: result
            for table in read_tables(folder.result_files())
            for result in table_to_results(table)
        }
    expected = {
        result.record: replace(
            result,
            issues=tuple(
                replace(issue, theme=THEMES.get((result.outcome or "", issue.event)))
                for issue in result.issues
            ),
        )
        for result in before
    }
    assert after == expected
    counted = Counter(
        (issue.theme, issue.severity)
        for result in expected.values()
        for issue in result.issues
        if issue.theme
    )
    told: Counter[tuple[str | None, str]] = Counter()
    for theme, aspects in tally.items():
        for (severity, basis), count in aspects.items():
            assert basis is None
            told[theme, severity] += count
    assert told == counted


def test_failed_and_reviewed_records_of_all_files_are_listed(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path))
    vias: list[Via] = ["answered", "failed", "review"]
    for n in range(4):
        rows = [Result(record(f"{n} {via}"), via, "normal", reason="odd") for via in vias[: n % 4]]
        place = folder.results / f"part-{n:05d}.parquet"
        write_table(place, [results_to_table(rows)], RESULT_SCHEMA)
    (tmp_path / ".work" / "rejected").mkdir(parents=True)
    for n in range(2):
        (tmp_path / ".work" / "rejected" / f"{n}.jsonl").write_text(f'{{"n":{n}}}\n')
    write_outcomes(folder)

    def texts(name: str) -> list[str]:
        return [orjson.loads(line)["text"] for line in (tmp_path / name).read_bytes().splitlines()]

    assert texts("failed.jsonl") == ["2 failed", "3 failed"]
    assert texts("review.jsonl") == ["3 review"]
    assert (tmp_path / "rejected.jsonl").read_text() == '{"n":0}\n{"n":1}\n'
