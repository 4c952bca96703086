"""Earlier runs: found, compared with, and kept."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from job.cli import app
from job.errors import UsageError
from job.history.baseline import KEPT, EarlierRuns, earlier_runs
from job.records import Result
from job.reduce.counting import reduce_results
from job.report import make_report, write_report
from job.report.changes import LISTED
from job.report.headline import detail
from job.report.words import Words
from job.storage.place import Place
from job.write import read_tables, write_json
from tests.job.report_run import NOON, issue, problem, theme, write_run
from tests.job.test_report import VALIDATOR, made

NAMES = ("pay", "mail", "disk", "login")


def a_day(out: Path, day: int, counts: dict[str, int], **run: Any) -> Path:
    """The folder of a finished run of 2 March 2026 + `day`, with so many records of each theme."""
    results: list[Result] = []
    for name, records in counts.items():
        for _ in range(records):
            number = len(results)
            time = NOON + timedelta(days=day, minutes=number % 60)
            results.append(problem(number, issue(theme=f"t-{name}"), time=time))
    severities = {"pay": "high", "login": "critical"}
    themes = [theme(f"t-{n}", title=n.title(), severity=severities.get(n, "low")) for n in NAMES]
    finished = f"2026-03-{3 + day:02d}T01:00:14Z"
    return write_run(out, results, themes, finished=finished, **run)


def compared(out: Path, baseline: str) -> dict[str, Any]:
    root = Place.of(out)
    report = orjson.loads(orjson.dumps(write_report(root, earlier=EarlierRuns(baseline, root))))
    VALIDATOR.validate(report)
    return dict(report)


def statuses(report: dict[str, Any]) -> dict[str, str | None]:
    return {theme["id"].removeprefix("t-"): theme["status"] for theme in report["themes"]}


def finished(out: Path, *args: Any, **run: Any) -> Path:
    """`a_day` with its report.json, which is all that a later run reads of it."""
    a_day(out, *args, **run)
    root = Place.of(out)
    facts, ledger = (orjson.loads((out / f"{n}.json").read_bytes()) for n in ("run", "ledger"))
    themes = pq.read_table(out / "themes.parquet").to_pylist()
    totals = reduce_results(read_tables((root / "results").glob("*.parquet")))
    write_json(root / "report.json", make_report(totals, themes, ledger, {}, facts, []))
    return out


def test_against_one_earlier_run(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10, "disk": 8, "login": 7})
    report = compared(a_day(tmp_path / "tue", 1, {"pay": 30, "login": 7, "mail": 6}), str(before))
    assert statuses(report) == {"login": "same", "pay": "worse", "mail": "new"}
    assert report["headline"] == "3 problems need action: 1 new, 1 worse, 1 for two days"
    said = detail(report, Words("en"))
    assert said.startswith("To act on: 1 critical, 1 high, 1 low. ")
    pay = next(t for t in report["themes"] if t["id"] == "t-pay")
    assert pay["change"] == {"before": 10, "now": 30, "ratio": 3.0}
    assert pay["days_seen"] == {"days": 2, "since": "2026-03-02"}
    comparison = report["comparison"]
    assert comparison["counts"] == {"new": 1, "worse": 1, "same": 1, "better": 0, "gone": 1}
    assert [gone["id"] for gone in comparison["gone"]] == ["t-disk"]
    assert (
        comparison["gone"][0] | {"before": 8, "last_seen": "2026-03-02"} == (comparison["gone"][0])
    )
    assert [run["path"] for run in comparison["runs"]] == ["../mon"]
    assert comparison["problems"] == {"before": 25, "now": 43}


def test_changes_are_headlined_in_chinese(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10, "disk": 8, "login": 7}, language="zh")
    out = a_day(tmp_path / "tue", 1, {"pay": 30, "login": 7, "mail": 6}, language="zh")
    assert compared(out, str(before))["headline"] == (
        "3 个问题需要处理：新增 1 个，加重 1 个，持续存在 1 个（2 天）"
    )


def test_two_identical_days(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10, "login": 7})
    report = compared(a_day(tmp_path / "tue", 1, {"pay": 10, "login": 7}), str(before))
    assert set(statuses(report).values()) == {"same"}
    assert report["comparison"]["gone"] == []
    assert report["headline"] == "2 problems need action: 2 for up to two days"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "another"}, "model"),
        ({"instructions": "another"}, "instructions"),
        ({"language": "zh"}, "language"),
        ({"stopped": {"reason": "quota"}}, "partial"),
    ],
)
def test_no_arrows_where_model_or_instructions_differ(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10}, **change)
    report = compared(a_day(tmp_path / "tue", 1, {"pay": 30, "mail": 6}), str(before))
    assert set(statuses(report).values()) == {None}
    assert all(theme["change"] is theme["days_seen"] is None for theme in report["themes"])
    assert (report["comparison"]["comparable"], report["comparison"]["reason"]) == (False, reason)
    assert report["comparison"]["gone"] == []
    assert report["headline"] == "1 problem needs action: 1 high"


def test_a_partial_run_is_compared_with_nothing(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10})
    out = a_day(tmp_path / "tue", 1, {"pay": 3}, stopped={"reason": "quota"})
    assert compared(out, str(before))["comparison"]["reason"] == "partial_now"


def test_auto_takes_the_median_of_the_last_seven_before_this_day(tmp_path: Path) -> None:
    for day in range(9):
        finished(tmp_path / f"d{day}", day, {"pay": 10 + 10 * (day % 2)})
    finished(tmp_path / "later", 11, {"pay": 1})
    finished(tmp_path / "partial", 9, {"pay": 1}, stopped={"reason": "quota"})
    (tmp_path / "notes").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    report = compared(a_day(tmp_path / "now", 10, {"pay": 20}), "auto")
    assert [run["path"] for run in report["comparison"]["runs"]] == [
        f"../d{day}" for day in range(8, 1, -1)
    ]
    assert report["themes"][0]["change"]["before"] == 10
    assert report["themes"][0]["status"] == "worse"
    assert report["themes"][0]["days_seen"] == {"days": 8, "since": "2026-03-04"}


def test_auto_goes_back_to_the_first_run_with_another_model(tmp_path: Path) -> None:
    for day, model in enumerate(("old", "old", "new", "new")):
        finished(tmp_path / f"d{day}", day, {"pay": 10}, model=model)
    report = compared(a_day(tmp_path / "now", 4, {"pay": 10}, model="new"), "auto")
    assert [run["path"] for run in report["comparison"]["runs"]] == ["../d3", "../d2"]
    between = compared(a_day(tmp_path / "again", 4, {"pay": 10}, model="old"), "auto")
    assert between["comparison"]["reason"] == "model"
    assert set(statuses(between).values()) == {None}


def test_auto_with_nothing_earlier(tmp_path: Path) -> None:
    report = compared(a_day(tmp_path / "now", 1, {"pay": 10}), "auto")
    assert (
        report["comparison"] | {"comparable": False, "reason": "none_found"}
        == (report["comparison"])
    )


def test_a_problem_that_goes_on_counts_its_days(tmp_path: Path) -> None:
    before = finished(tmp_path / "d7", 7, {"login": 5})
    report = orjson.loads((before / "report.json").read_bytes())
    report["themes"][0]["days_seen"] = {"days": 8, "since": "2026-03-02"}
    (before / "report.json").write_bytes(orjson.dumps(report))
    report = compared(a_day(tmp_path / "d8", 8, {"login": 5}), str(before))
    assert report["headline"] == "1 problem needs action: 1 for nine days"
    assert report["themes"][0]["days_seen"] == {"days": 9, "since": "2026-03-02"}


def test_rendering_again_needs_no_earlier_run(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10})
    out = a_day(tmp_path / "tue", 1, {"pay": 30})
    first = compared(out, str(before))
    shutil.rmtree(before)
    again = made(out)
    assert again["comparison"] == first["comparison"]
    assert statuses(again) == statuses(first)


def test_without_a_baseline_nothing_is_compared(tmp_path: Path) -> None:
    report = made(a_day(tmp_path / "tue", 1, {"pay": 30}))
    assert report["comparison"] is None
    assert statuses(report) == {"pay": None}
    assert not (tmp_path / "tue" / KEPT).exists()


def test_what_is_no_earlier_run_is_said_before_anything_is_done(tmp_path: Path) -> None:
    out = Place.of(finished(tmp_path / "mon", 0, {"pay": 10}))
    assert earlier_runs(None, out) is None
    assert earlier_runs("auto", out) is not None
    for named, said in ((str(tmp_path), "finished run"), (str(out), "own folder")):
        with pytest.raises(UsageError, match=said):
            earlier_runs(named, out)


def test_an_earlier_run_that_is_removed_meanwhile_is_compared_with_all_the_same(
    tmp_path: Path,
) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10})
    root = Place.of(a_day(tmp_path / "tue", 1, {"pay": 30}))
    runs = EarlierRuns("auto", root)
    runs.themes()
    (before / "report.json").unlink()
    report = write_report(root, earlier=runs)
    assert report["comparison"]["comparable"]


def test_the_report_command_compares_anew(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10})
    out = a_day(tmp_path / "tue", 1, {"pay": 30}, inputs=[])
    (tmp_path / "known.yaml").write_text("pay: {owner: Li}\n")

    def report(*flags: str) -> Any:
        ended = CliRunner().invoke(app, ["report", str(out), "--json", *flags])
        assert ended.exit_code == 0, ended.output
        return orjson.loads(ended.stdout)

    flags = ("--baseline", str(before), "--known", str(tmp_path / "known.yaml"))
    found = report(*flags)
    assert statuses(found) == {"pay": "worse"}
    assert found["themes"][0]["owner"] == "Li"
    assert statuses(report()) == {"pay": "worse"}
    for wrong in (("--baseline", str(tmp_path)), ("--known", str(tmp_path / "none.yaml"))):
        assert CliRunner().invoke(app, ["report", str(out), *wrong]).exit_code == 2


def test_many_new_themes_are_counted_and_the_gravest_named(tmp_path: Path) -> None:
    before = finished(tmp_path / "mon", 0, {"pay": 10})
    names = [f"t-{n:02d}" for n in range(25)]
    results = [
        problem(n, issue(theme=name), time=NOON + timedelta(days=1)) for n, name in enumerate(names)
    ]
    themes = [theme(name, title=f"Rare {name}", severity="low") for name in names]
    out = write_run(tmp_path / "tue", results, themes)
    report = compared(out, str(before))
    assert report["comparison"]["counts"]["new"] == 25
    page = (out / "report.md").read_text("utf-8")
    section = page[page.index("### New · 25 problems") : page.index("### Gone")]
    assert section.count("- **Low** Rare") == LISTED
    assert "5 more below" in section


def test_two_runs_of_one_day_are_no_span_of_days(tmp_path: Path) -> None:
    for name in ("early", "late"):
        finished(tmp_path / name, 0, {"pay": 10})
    report = compared(a_day(tmp_path / "tue", 1, {"pay": 12}), "auto")
    assert report["themes"][0]["days_seen"] == {"days": 2, "since": "2026-03-02"}
    page = (tmp_path / "tue/report.md").read_text("utf-8")
    assert "## Changes · against the median of 2 earlier runs\n" in page
