from __future__ import annotations

from pathlib import Path

import pytest

from job.grouping import Groups, collect_issues, group_issues
from job.records import RESULT_SCHEMA, Issue, Outcome, Result, results_to_table
from job.theme_table import read_themes, write_themes
from job.write import write_table
from tests.job.make import record


def issue(event: str, cause: str | None, **fields: object) -> Issue:
    severity = "info" if cause is None else "high"
    return Issue(event, cause, "stated", None, severity, None, **fields)  # type: ignore[arg-type]


def results(path: Path, rows: list[tuple[Outcome, str, str | None]]) -> list[Path]:
    made = [
        Result(record(f"{n} {event}"), "answered", outcome, (issue(event, cause),))
        for n, (outcome, event, cause) in enumerate(rows)
    ]
    write_table(path, [results_to_table(made)], RESULT_SCHEMA)
    return [path]


REFUNDS: list[tuple[Outcome, str, str | None]] = [
    ("problem", "the refund has not arrived", "finance approves refunds once a week"),
    ("problem", "refund still missing after two weeks", "refunds are approved only weekly"),
    ("problem", "退款迟迟不到账", "财务每周才审批一次退款"),
]
PRINTER: list[tuple[Outcome, str, str | None]] = [
    ("problem", "the printer jams on every page", "the rollers are worn out"),
    ("problem", "paper gets stuck in the printer", "worn rollers"),
]
PRAISE: list[tuple[Outcome, str, str | None]] = [("positive", "the refund came quickly", None)]
OTHERS: list[tuple[Outcome, str, str | None]] = [
    ("normal", "all is well", None),
    ("unclear", "hm", "who knows"),
]


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Groups, Path]:
    folder = tmp_path_factory.mktemp("first")
    paths = results(folder / "a.parquet", [*REFUNDS, *PRINTER, *PRAISE, *OTHERS])
    groups = group_issues(paths, "en", None)
    write_themes(folder / "themes.parquet", groups.groups, groups.names, groups.space)
    return groups, folder / "themes.parquet"


def test_issues_of_problems_and_praise_have_one_theme_each(first_day: tuple[Groups, Path]) -> None:
    groups, _ = first_day
    refund = {groups.themes[outcome, event, cause] for outcome, event, cause in REFUNDS}
    printer = {groups.themes[outcome, event, cause] for outcome, event, cause in PRINTER}
    praise = {groups.themes[outcome, event, cause] for outcome, event, cause in PRAISE}
    assert len(refund) == len(printer) == len(praise) == 1
    assert len(refund | printer | praise) == 3
    assert sum(group.count for group in groups.groups) == 6
    assert set(groups.names) == {group.id for group in groups.groups}


def test_the_order_of_the_files_changes_nothing(
    first_day: tuple[Groups, Path], tmp_path: Path
) -> None:
    groups, _ = first_day
    paths = [
        *results(tmp_path / "b.parquet", PRAISE + list(reversed(PRINTER))),
        *results(tmp_path / "c.parquet", list(reversed(REFUNDS))),
    ]
    assert group_issues(paths, "en", None).themes == groups.themes


def test_a_theme_keeps_its_id_on_the_next_day(
    first_day: tuple[Groups, Path], tmp_path: Path
) -> None:
    groups, table = first_day
    reworded: list[tuple[Outcome, str, str | None]] = [
        ("problem", "my refund is late again", "refunds wait for a weekly approval by finance"),
        ("problem", "还没收到退款", "退款要等财务每周审批"),
    ]
    earlier = read_themes(table)
    assert {theme.id for theme in earlier} == {group.id for group in groups.groups}
    again = group_issues(results(tmp_path / "d.parquet", reworded), "en", None, earlier)
    assert {again.themes[key] for key in reworded} == {groups.themes[REFUNDS[0]]}
    alone = group_issues(results(tmp_path / "e.parquet", reworded), "en", None)
    assert {alone.themes[key] for key in reworded} != {groups.themes[REFUNDS[0]]}


def test_a_day_without_issues_has_no_themes(tmp_path: Path) -> None:
    groups = group_issues(results(tmp_path / "a.parquet", OTHERS), "en", None)
    assert (groups.groups, groups.themes) == ([], {})
    assert read_themes(tmp_path / "nowhere.parquet") == []


def test_issues_that_say_the_same_are_counted_together(tmp_path: Path) -> None:
    found = collect_issues(results(tmp_path / "a.parquet", [*PRINTER, *PRINTER]))
    assert [details.total() for details in found.details.values()] == [2, 2]
