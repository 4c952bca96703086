"""report.json: complete, valid against its schema, counted from the results."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from job.errors import InputError, LedgerError
from job.records import Rejected, Result
from job.report import write_report
from job.report.chart import chart
from job.storage.place import Place
from tests.job.report_run import NOON, issue, problem, record, theme, write_run

SCHEMA = orjson.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


def made(out: Path) -> dict[str, Any]:
    """The report as written, after its check against the schema."""
    returned = write_report(Place.of(out), line_of=lambda source, position: 1 + position // 100)
    report: dict[str, Any] = orjson.loads((out / "report.json").read_bytes())
    VALIDATOR.validate(report)
    assert report == orjson.loads(orjson.dumps(returned))
    return report


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_a_day(tmp_path: Path) -> None:
    results = [
        *(problem(n, user=f"u{n % 3}") for n in range(6)),
        problem(70, issue(theme="t-slow", severity="low"), kind="feedback"),
        Result(record(80), "folded", "normal"),
        Result(record(81, kind="feedback"), "answered", "positive", (issue(theme=None),)),
        Result(record(82), "review", "unclear"),
        Result(record(83), "failed"),
    ]
    rejected = [Rejected("logs/app.jsonl", 900, "not_json", "", "<b>")]
    slow = theme("t-slow", title="Slow", severity="low", named_by="code")
    report = made(write_run(tmp_path / "out", results, [slow, theme()], rejected, skipped=2))

    assert list(report["period"]) == [
        *("first", "last", "timezone", "timed", "untimed", "untimed_problems", "by_hour")
    ]
    assert report["headline"] == "1 problem needs action: 1 high"
    assert [a["theme"] for a in report["actions"]] == ["t-pay"]
    assert [t["id"] for t in report["themes"]] == ["t-pay", "t-slow"]
    pay = report["themes"][0]
    assert (pay["records"], pay["users"], pay["share"]) == (6, 3, 0.857)
    assert (pay["status"], pay["change"]) == (None, None)
    assert pay["by_kind"] == {"operation": 6}
    assert pay["first"] == "2026-03-02T20:00:00+08:00"
    assert pay["by_hour"] == [{"hour": "2026-03-02T20:00:00+08:00", "records": 6}]
    assert report["period"]["by_hour"][1]["low"] == 1
    assert report["problems"]["need_action"] == 1
    assert report["normal"]["records"] == 1
    assert report["positive"]["records"] == 1
    assert report["quality"]["by_via"]["review"] == 1
    assert report["quality"]["analysed_share"] == 0.818
    assert report["quality"]["rejected_by"] == {"not_json": 1}
    assert report["quality"]["rejected_examples"][0]["line"] == 10
    assert report["ledger"]["skipped"] == 2
    assert report["method"]["named_by"] == {"model": 1, "code": 1}


@pytest.mark.parametrize(
    ("results", "headline"),
    [
        ([], "没有可供分析的记录"),
        ([Result(record(1), "answered", "normal")], "未发现问题"),
        ([problem(1, issue(theme="t-slow"))], "没有需要马上处理的问题"),
        ([problem(1), problem(2, issue(theme="t-slow"))], "1 个问题需要处理：高 1 个"),
    ],
)
def test_headlines_in_chinese(results: list[Result], headline: str, tmp_path: Path) -> None:
    themes = [theme(), theme("t-slow", severity="medium")]
    out = write_run(tmp_path / "out", results, themes, language="zh")
    assert made(out)["headline"] == headline


def test_themes_without_a_problem_record_are_not_reported(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", [problem(1)], [theme(), theme("t-gone")])
    assert [t["id"] for t in made(out)["themes"]] == ["t-pay"]


def test_hours_are_those_of_the_zone_of_the_report(tmp_path: Path) -> None:
    out = write_run(
        tmp_path / "out", [problem(20), problem(40)], [theme()], timezone="Asia/Kolkata"
    )
    assert [h["hour"] for h in made(out)["period"]["by_hour"]] == [
        "2026-03-02T17:00:00+05:30",
        "2026-03-02T18:00:00+05:30",
    ]


def test_quotes_stand_in_their_records_also_when_text_and_quote_are_long(tmp_path: Path) -> None:
    texts = ["短 " * 900 + "支付一直失败" + " 后" * 900, "z" * 5_000, "payment failed\nagain"]
    quotes = ["支付一直失败", "z" * 4_000, "failed\nagain"]
    results = [
        problem(n, issue(quote=quote), text=text)
        for n, (text, quote) in enumerate(zip(texts, quotes, strict=True))
    ]
    report = made(write_run(tmp_path / "out", results, [theme()]))
    whole = {r.record.id: r.record.text for r in results}
    pieces = report["themes"][0]["evidence"]
    assert len(pieces) == 3
    for piece in pieces:
        assert piece["quote"]
        assert piece["quote"] in piece["text"]
        start = piece["text_offset"]
        assert whole[piece["record"]][start:].startswith(piece["text"])


def test_quotes_on_a_card_are_the_first_a_typical_and_the_worst(tmp_path: Path) -> None:
    results = [problem(n, text=f"the page took {n} seconds to open") for n in range(1, 30)]
    results.append(problem(0, text="it began here"))
    results.append(problem(40, issue(severity="critical"), text="all orders are lost"))
    pieces = made(write_run(tmp_path / "out", results, [theme()]))["themes"][0]["evidence"]
    assert len(pieces) == 20
    assert [piece["role"] for piece in pieces[:3]] == ["first", "typical", "worst"]
    assert pieces[0]["text"] == "it began here"
    assert pieces[1]["text"].startswith("the page took")
    assert pieces[2]["text"] == "all orders are lost"


def test_all_records_of_a_small_theme_are_its_evidence(tmp_path: Path) -> None:
    results = [problem(n, text="the same words") for n in range(5)]
    pieces = made(write_run(tmp_path / "out", results, [theme()]))["themes"][0]["evidence"]
    assert [piece["role"] for piece in pieces] == ["first", "same", "same", "same", "same"]


@pytest.mark.parametrize("change", [{"records": 9}, {"records": 2, "answered": 1, "failed": 1}])
def test_a_ledger_that_contradicts_the_results_is_an_error(
    change: dict[str, int], tmp_path: Path
) -> None:
    out = write_run(tmp_path / "out", [problem(1), problem(2)], [theme()])
    ledger = orjson.loads((out / "ledger.json").read_bytes()) | change
    (out / "ledger.json").write_bytes(orjson.dumps(ledger))
    with pytest.raises(LedgerError):
        write_report(Place.of(out))
    assert not (out / "report.json").exists()


def test_a_theme_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", [problem(1)], [theme("t-other")])
    with pytest.raises(LedgerError, match="t-pay"):
        write_report(Place.of(out))


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.json"):
        write_report(Place.of(tmp_path))


def test_rendering_again_gives_the_same_files(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", [problem(n) for n in range(30)], [theme()])
    names = ("report.json", "report.md", "report.html", "evidence.csv")
    write_report(Place.of(out))
    first = [(out / name).read_bytes() for name in names]
    write_report(Place.of(out))
    assert [(out / name).read_bytes() for name in names] == first
    assert not list(out.glob(".*"))


@settings(max_examples=40)
@given(
    hours=st.lists(st.integers(0, 24 * 365 * 30), min_size=1, max_size=20),
    zone=st.sampled_from(["UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns"]),
)
def test_bars_hold_every_record_and_are_few(hours: list[int], zone: str) -> None:
    times = [NOON + timedelta(hours=h) for h in sorted(hours)]
    bars = chart(
        {
            "first": times[0].isoformat(),
            "last": times[-1].isoformat(),
            "timezone": zone,
            "by_hour": [
                {"hour": t.isoformat(), "info": 0, "low": 1, "medium": 0, "high": 2, "critical": 0}
                for t in times
            ],
        }
    )
    assert bars is not None
    assert sum(bar.records for bar in bars.bars) == 3 * len(times)
    assert len(bars.bars) <= 122
    starts = [bar.start for bar in bars.bars]
    assert starts == sorted(set(starts))


def test_flags_stand_in_one_order_however_the_results_came(tmp_path: Path) -> None:
    flagged = [
        Result(record(n, flags=(flag,)), "answered", "normal")
        for n, flag in enumerate(("nul", "ansi"))
    ]
    for name, results in (("one", flagged), ("other", flagged[::-1])):
        report = write_report(Place.of(write_run(tmp_path / name, results, [])))
        assert list(report["quality"]["flags"]) == ["ansi", "nul"]
