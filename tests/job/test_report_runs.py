"""The page of a run that stopped, is not whole, or is otherwise unusual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job.records import Result
from job.report import write_report
from job.report.words import Language, Words
from job.storage.place import Place
from tests.job.report_run import issue, problem, record, theme, write_run
from tests.job.test_report_page import page_of


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("results", "run", "says"),
    [
        ([], {}, "no_records"),
        ([Result(record(1), "answered", "normal")], {}, "no_problems"),
        ([problem(1, time=None)], {}, "no_times"),
        ([problem(1)], {"provider": "extractive", "model": None}, "notice_model_free"),
        ([problem(1, issue(theme=None))], {}, "small"),
    ],
)
def test_unusual_runs_have_whole_pages(
    results: list[Result], run: dict[str, Any], says: str, language: Language, tmp_path: Path
) -> None:
    out = write_run(tmp_path / "out", results, [theme()], language=language, **run)
    write_report(Place.of(out))
    words = Words(language)(says)
    assert words in "".join(page_of(out).text)
    assert words[:20] in (out / "report.md").read_text("utf-8") or says == "small"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_stopped_run_says_so_first(language: Language, tmp_path: Path) -> None:
    results = [problem(1), Result(record(2), "unasked")]
    stopped = {"reason": "deadline of 60 s"}
    out = write_run(tmp_path / "out", results, [theme()], language=language, stopped=stopped)
    write_report(Place.of(out))
    text = "".join(page_of(out).text)
    notice = Words(language)("notice_partial", reason="deadline of 60 s", unasked=1, records=2)
    assert notice in text
    assert text.index(notice) < text.rindex(Words(language)("count_high", n=1))


def test_the_times_of_the_run_are_in_the_zone_of_the_report(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", [problem(1)], [theme()], finished="2026-03-03T20:00:14Z")
    write_report(Place.of(out))
    assert "**Finished**: 4 March 2026 04:00:14" in (out / "report.md").read_text("utf-8")


def test_why_a_run_stopped_is_said_in_the_language_of_its_report(tmp_path: Path) -> None:
    results = [problem(1), Result(record(2), "unasked")]
    stopped = {"reason": "interrupted by SIGINT"}
    out = write_run(tmp_path / "out", results, [theme()], language="zh", stopped=stopped)
    write_report(Place.of(out))
    assert "运行提前结束（被 SIGINT 信号中断）" in "".join(page_of(out).text)


def test_unasked_records_make_a_report_partial_even_if_nothing_stopped_it(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", [problem(1), Result(record(2), "unasked")], [theme()])
    write_report(Place.of(out))
    text = "".join(page_of(out).text)
    assert Words("en")("notice_unasked", unasked=1, records=2) in text
    assert "1 of the 1 records analysed (2 in all) report a problem" in text
