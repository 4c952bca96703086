"""evidence.csv: every problem record with its theme, safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.records import Result
from job.report import write_report
from job.report.evidence_csv import CELL_CHARS, COLUMNS, cell
from job.storage.place import Place
from tests.job.report_run import issue, problem, record, theme, write_run


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "evidence.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_every_issue_of_every_problem_record_has_a_row(tmp_path: Path) -> None:
    results = [
        problem(1, issue(quote="error"), issue(theme="t-slow", event="slow")),
        problem(2, text='many\nlines, "quoted"', user="ann", time=None),
        Result(record(3), "review", "problem"),
        Result(record(4), "answered", "normal"),
        Result(record(5), "answered", "positive", (issue(),)),
    ]
    out = write_run(tmp_path / "out", results, [theme(), theme("t-slow", title="Slow")])
    write_report(Place.of(out), line_of=lambda source, position: 1 + position // 100)
    found = rows(out)

    assert (out / "evidence.csv").read_bytes().startswith(b"\xef\xbb\xbf" + b"record,source")
    assert tuple(found[0]) == COLUMNS
    ids = [results[n].record.id for n in (0, 0, 1, 2)]
    assert [row["record"] for row in found] == ids
    assert [row["title"] for row in found] == ["Payments time out", "Slow", "Payments time out", ""]
    assert found[0] | {"line": "2", "position": "100", "quote": "error"} == found[0]
    assert found[0]["time"] == "2026-03-02 20:01:00"
    assert found[2]["text"] == 'many\nlines, "quoted"'
    assert found[2]["time"] == ""


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＠x", " =1", "\u3000-1"],
)
def test_a_cell_is_never_a_formula(text: str) -> None:
    assert cell(text) == "'" + text


def test_other_cells_are_left_as_they_are() -> None:
    assert [cell(v) for v in ("a=b", " x", "", None, 12)] == ["a=b", " x", "", "", "12"]


def test_a_cell_says_where_it_was_cut() -> None:
    long = cell("x" * 40_000)
    assert len(long) == CELL_CHARS
    assert long.endswith("[…]")


def test_hostile_words_reach_no_cell_as_a_formula(tmp_path: Path) -> None:
    attack = '=HYPERLINK("http://evil.example")'
    found = issue(event=attack, cause=attack, quote=attack)
    results = [problem(1, found, text=attack, user=attack, service=attack, source=attack)]
    out = write_run(tmp_path / "out", results, [theme(title=attack)])
    write_report(Place.of(out))
    with (out / "evidence.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [value for row in csv.reader(file) for value in row]
    assert not [value for value in cells if value.startswith("=")]
    assert cells.count("'" + attack) == 8


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_any_words_come_back_from_the_file_as_they_were(texts: list[str]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerow([cell(text) for text in texts])
    file.seek(0)
    (row,) = csv.reader(file)
    for text, read in zip(texts, row, strict=True):
        assert read.removeprefix("'") == text.replace("\0", "\ufffd").removeprefix("'")
        assert not read.lstrip().startswith(("=", "+", "-", "@"))
