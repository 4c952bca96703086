"""Known problems: who owns them, what is muted, what is closed and comes back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from job.cli import app
from job.errors import UsageError
from job.history.known import Entry, judge, load_known, parse_known
from job.history.known_file import change_known
from job.report import write_report
from job.storage.place import Place
from tests.job.report_run import issue, problem, theme, write_run

THEME = {
    "id": "t-0123456789",
    "title": "Payments time out",
    "summary": "The page fails.",
    "cause": "支付网关超时",
    "last": datetime(2026, 3, 10, 12, tzinfo=UTC),
}
RUN = {
    "day": "2026-03-10",
    "started": datetime(2026, 3, 11, 1, tzinfo=UTC),
    "zone": ZoneInfo("UTC"),
}
COMMENTED = """\
# What we know.
t-0123456789:   # the gateway
  owner: Li     # until May

lease renewal: {note: 'harmless'}
"""


def entries(text: str) -> list[Entry]:
    return parse_known(text, Path("known.yaml"))


@pytest.mark.parametrize(
    ("about", "meant"),
    [
        ("t-0123456789", True),
        ("t-9876543210", False),
        ("payments", True),
        ("time PAYMENTS", True),
        ("payments refund", False),
        ("网关超时", True),
    ],
)
def test_an_entry_is_about_an_id_or_about_all_of_its_words(about: str, meant: bool) -> None:
    (entry,) = entries(f"{about}: {{owner: Li}}")
    assert entry.matches(THEME) == meant
    assert judge([entry], THEME, RUN).owner == ("Li" if meant else None)


@pytest.mark.parametrize(("hour", "returned"), [(0, True), (2, False)])
def test_without_times_the_run_decides_whether_a_closed_problem_is_back(
    hour: int, returned: bool
) -> None:
    known = entries(f"payments: {{closed: 2026-03-11T0{hour}:00:00+00:00}}")
    assert judge(known, THEME | {"last": None}, RUN).returned == returned


def test_what_is_back_is_not_muted_any_more() -> None:
    known = entries("payments: {closed: 2026-03-09, muted_until: 2026-04-01}")
    verdict = judge(known, THEME, RUN)
    assert (verdict.returned, verdict.muted_until) == (True, None)


@pytest.mark.parametrize(
    ("until", "muted"), [("2026-03-09", None), ("2026-03-10", date(2026, 3, 10))]
)
def test_muted_to_the_end_of_a_day_of_the_data(until: str, muted: date | None) -> None:
    known = entries(f"payments: {{muted_until: {until}}}")
    assert judge(known, THEME, RUN).muted_until == muted


@pytest.mark.parametrize(
    ("closed", "returned"),
    [
        ("2026-03-09", True),
        ("2026-03-10", False),
        ("true", True),
        ("false", False),
        ("2026-03-10T11:00:00+00:00", True),
        ("2026-03-10T13:00:00+00:00", False),
        ("2026-03-10T19:00:00+08:00", True),
        # A report of an old day is made again after the closing.
        ("2026-03-11T00:30:00+00:00", False),
        ("2026-03-11T02:00:00+00:00", False),
    ],
)
def test_a_closed_problem_that_occurs_later_is_back(closed: str, returned: bool) -> None:
    known = entries(f"payments: {{closed: {closed}}}")
    assert judge(known, THEME, RUN).returned == returned
    if closed[0] == "2":
        quoted = entries(f"payments: {{closed: '{closed}'}}")
        assert judge(quoted, THEME, RUN).returned == returned


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("payments: {mutd: 2026-03-10}", "mutd"),
        ("- payments", "entries"),
        ("payments: {muted_until: soon}", "muted_until"),
        ("payments: {closed: 2026-02-30}", "known.yaml"),
        ("payments: [", "line 1"),
        ("mail: {owner: Li}\nmail: {owner: Bo}", "line 2: 'mail' stands twice, in line 1 already"),
        ("7: {}", "words"),
    ],
)
def test_what_makes_no_sense_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        entries(text)


def test_an_empty_file_and_a_missing_one_know_nothing(tmp_path: Path) -> None:
    assert entries("") == entries("# nothing yet\n") == load_known(tmp_path / "none.yaml") == []


def test_changes_keep_the_comments_and_the_order(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(COMMENTED)
    change_known(path, "mute", "t-0123456789", until=date(2026, 4, 1))
    change_known(path, "add", "disk full", owner="王")
    change_known(path, "remove", "lease renewal")
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[:3] == COMMENTED.splitlines()[:3]
    known = {entry.about: entry.known for entry in load_known(path)}
    assert list(known) == ["t-0123456789", "disk full"]
    assert known["t-0123456789"].muted_until == date(2026, 4, 1)
    assert known["disk full"].owner == "王"


def test_a_file_of_comments_alone_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text("# ours\n")
    change_known(path, "close", "lease renewal")
    assert path.read_text().startswith("# ours\nlease renewal:\n  closed:")
    assert load_known(path)[0].known.closed is not None
    change_known(path, "open", "lease renewal")
    assert load_known(path)[0].known.closed is None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def fupan(*words: str) -> tuple[int, str]:
        ended = CliRunner().invoke(app, ["known", *words])
        return ended.exit_code, ended.output

    assert fupan() == (0, "known.yaml: no known problems\n")
    muted = fupan("mute", "lease", "renewal", "--until", "2026-04-01", "--owner", "Li")
    assert muted == (0, "known.yaml: lease renewal is muted\n")
    assert fupan("list") == (0, "lease renewal  ·  owner Li  ·  muted until 2026-04-01\n")
    for wrong in (
        ("mute", "x"),
        ("mute", "x", "--until", "soon"),
        ("close", "x", "--until", "2026-04-01"),
        ("remove", "x"),
        ("close",),
    ):
        code, said = fupan(*wrong)
        assert (code, said.count("\n")) == (2, 1), said
    assert fupan("remove", "lease renewal")[0] == 0
    assert fupan()[1] == "known.yaml: no known problems\n"


def report_with(tmp_path: Path, known: str, **run: Any) -> dict[str, Any]:
    path = tmp_path / "known.yaml"
    path.write_text(known, encoding="utf-8")
    themes = [theme(), theme("t-slow", title="Pages are slow", severity="low")]
    results = [problem(n, issue(theme=("t-pay", "t-slow")[n % 2])) for n in range(10)]
    out = write_run(tmp_path / "out", results, themes, **run)
    return write_report(Place.of(out), known=path)


def test_a_muted_problem_is_counted_and_not_headlined(tmp_path: Path) -> None:
    report = report_with(tmp_path, "payments: {muted_until: 2026-04-01, owner: Li}\nother: {}")
    assert report["headline"] == "No problem needs action"
    assert report["actions"] == []
    assert (report["problems"]["themes"], report["problems"]["muted"]) == (2, 1)
    assert report["themes"][0]["muted_until"] == "2026-04-01"
    assert report["themes"][0]["owner"] == "Li"
    assert report["known"] == {
        "file": str(tmp_path / "known.yaml"),
        "muted": {"themes": 1, "records": 5},
        "returned": [],
        "unused": ["other"],
    }


def test_a_closed_problem_that_is_back_is_headlined_as_such(tmp_path: Path) -> None:
    report = report_with(tmp_path, "pages slow: {closed: 2026-03-01}")
    assert report["headline"] == (
        "2 problems need action: 1 high, 1 low, 1 of them back although closed"
    )
    assert [action["theme"] for action in report["actions"]] == ["t-slow", "t-pay"]
    assert report["actions"][0]["returned"]
    page = (tmp_path / "out/report.md").read_text("utf-8")
    assert "Low · Back although closed · Pages are slow" in page
    assert report["known"]["returned"] == ["t-slow"]


def test_it_is_said_in_chinese_too(tmp_path: Path) -> None:
    report = report_with(tmp_path, "pages slow: {closed: 2026-03-01}", language="zh")
    assert report["headline"] == "2 个问题需要处理：高 1 个，低 1 个，其中 1 个关闭后复发"
