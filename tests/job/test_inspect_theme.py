"""`fupan show`: the themes of a run and the records behind them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from job.cli import app
from job.report import write_report
from job.storage.place import Place
from tests.job.report_run import issue, problem, theme, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with 25 records of one theme, two of another and one of both."""
    pay = [problem(n, text=f"payment {n} failed", user=f"u{n}") for n in range(25)]
    slow = [problem(n, issue(theme="t-slow", event="slow")) for n in (30, 31)]
    both = problem(40, issue(), issue(theme="t-slow", event="slow as well"), text="pay, slowly")
    write_run(tmp_path, [*pay, *slow, both], [theme(), theme("t-slow", title="All is slow")])
    write_report(Place.of(tmp_path), lambda source, position: None)
    return tmp_path


def show(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["show", *map(str, arguments)])


def test_without_a_theme_all_are_listed_with_their_ids(run: Path) -> None:
    ended = show(run)
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [["t-pay", "26"], ["t-slow", "3"]]
    assert lines[1].endswith("All is slow")


def test_a_theme_is_shown_with_its_records_up_to_the_limit(run: Path) -> None:
    ended = show(run, "--theme", "t-pay")
    assert "Payments time out" in ended.stdout
    assert "cause (stated): The gateway times out." in ended.stdout
    assert ended.stdout.count("\n-- ") == 20
    assert ended.stdout.endswith("and 6 more records (--limit 0 shows all)\n")
    assert show(run, "--theme", "t-pay", "--limit", "0").stdout.count("\n-- ") == 26


def test_as_json_every_record_is_a_line_with_the_issues_of_the_theme(run: Path) -> None:
    rows = [
        orjson.loads(line) for line in show(run, "--theme", "t-slow", "--json").stdout.splitlines()
    ]
    assert [row["issues"][0]["event"] for row in rows] == ["slow", "slow", "slow as well"]
    assert all(len(row["issues"]) == 1 for row in rows)
    assert rows[2]["text"] == "pay, slowly"


def test_the_beginning_of_an_id_is_enough_if_only_one_begins_so(run: Path) -> None:
    assert "All is slow" in show(run, "--theme", "sl").stdout
    unclear = show(run, "--theme", "t-")
    assert unclear.exit_code == 2
    assert "the beginning of 2 themes" in unclear.stderr
    assert show(run, "--theme", "t-x").exit_code == 2


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    assert show(tmp_path).exit_code == 2
    (tmp_path / "report.json").write_text("[1]")
    assert "not written by a run" in show(tmp_path).stderr


def test_hostile_text_moves_nothing_in_the_terminal(tmp_path: Path) -> None:
    text = "first\x1b[2J\nsecond \u202e\rthird\x07"
    write_run(tmp_path, [problem(1, text=text, user="\x1b]0;x\x07")], [theme(title="a\x1b[31m")])
    write_report(Place.of(tmp_path), lambda source, position: None)
    shown = show(tmp_path).stdout + show(tmp_path, "--theme", "t-pay").stdout
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "| first" in shown
    assert "| second" in shown
