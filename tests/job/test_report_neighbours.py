"""Evidence stands among its neighbours: the records before and after it in its file."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from job.records import Result, results_to_table
from job.report import write_report
from job.report.neighbours import TEXT_CHARS, find_neighbours, merge_neighbours
from job.storage.place import Place
from tests.job.report_run import issue, problem, record, theme, write_run


def normal(number: int, **fields: Any) -> Result:
    return Result(record(number, **fields), "answered", "normal")


def beside(out: Path, line: bool = True) -> dict[str, list[dict[str, Any]]]:
    line_of = (lambda source, position: 1 + position // 100) if line else None
    report = write_report(Place.of(out), line_of)
    found: dict[str, list[dict[str, Any]]] = report["themes"][0]["evidence"][0]["neighbours"]
    return found


def test_two_records_before_and_two_after_in_the_order_of_the_file(tmp_path: Path) -> None:
    results = [normal(n, text=f"line {n}", level="INFO") for n in (1, 2, 3, 5, 6, 7)]
    results.append(problem(4, issue(quote="error")))
    random.Random(1).shuffle(results)
    found = beside(write_run(tmp_path / "out", results, [theme()]))
    assert [near["text"] for near in found["before"]] == ["line 2", "line 3"]
    assert [near["text"] for near in found["after"]] == ["line 5", "line 6"]
    assert found["before"][0] == {
        "record": record(2).id,
        "line": 3,
        "time": "2026-03-02T20:02:00+08:00",
        "level": "INFO",
        "text": "line 2",
    }


def test_other_files_are_no_neighbours_and_a_file_has_ends(tmp_path: Path) -> None:
    results = [normal(1, source="logs/b.jsonl"), problem(2), normal(3)]
    found = beside(write_run(tmp_path / "out", results, [theme()]), line=False)
    assert found["before"] == []
    assert [(near["record"], near["line"]) for near in found["after"]] == [(record(3).id, None)]


def test_a_long_neighbour_says_that_it_was_cut(tmp_path: Path) -> None:
    results = [normal(1, text="日志 " * 400), problem(2)]
    near = beside(write_run(tmp_path / "out", results, [theme()]))["before"][0]
    assert len(near["text"]) == TEXT_CHARS
    assert near["text"].endswith("…")


def test_the_page_shows_them_with_their_lines(tmp_path: Path) -> None:
    results = [normal(1, text="<b>pool</b> exhausted", level="WARN"), problem(2)]
    write_report(
        Place.of(write_run(tmp_path / "out", results, [theme()])), lambda source, position: 77
    )
    html = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "&lt;b&gt;pool&lt;/b&gt; exhausted" in html
    assert '<span class="no">77</span>' in html


@settings(max_examples=60)
@given(
    positions=st.sets(st.integers(0, 60), min_size=1),
    wanted=st.sets(st.integers(0, 60), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    seed=st.integers(0, 9),
)
def test_cuts_and_order_of_the_results_change_nothing(
    positions: set[int], wanted: set[int], cuts: list[int], seed: int
) -> None:
    rows = sorted(positions)
    random.Random(seed).shuffle(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    tables = [_table(rows[a:b]) for a, b in pairwise(bounds)]
    places = [("logs/app.jsonl", 100 * position) for position in wanted]
    found = merge_neighbours(find_neighbours([table], places) for table in tables)
    assert found == find_neighbours(tables, places)
    for position in wanted:
        near = found["logs/app.jsonl", 100 * position]
        assert [n.position // 100 for n in near.before] == sorted(
            p for p in positions if p < position
        )[-2:]
        assert [n.position // 100 for n in near.after] == sorted(
            p for p in positions if p > position
        )[:2]


def _table(numbers: list[int]) -> pa.Table:
    return results_to_table(normal(number) for number in numbers)


def test_every_card_has_neighbours_however_many_rare_themes_stand_before_it(
    tmp_path: Path,
) -> None:
    rare = [problem(n, issue(theme=f"t-{n}")) for n in range(70)]
    common = [problem(n, issue(theme="t-common")) for n in range(70, 73)]
    themes = [theme(f"t-{n}", severity="medium") for n in range(70)]
    themes.append(theme("t-common", severity="low"))
    report = write_report(Place.of(write_run(tmp_path / "out", [*rare, *common], themes)))
    last = report["themes"][-1]
    assert last["id"] == "t-common"
    assert last["evidence"][0]["neighbours"]["before"]
