from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from job.finish import finish_results
from job.naming.code_names import ThemeName
from job.records import RESULT_SCHEMA, Issue, Outcome, Result, results_to_table, table_to_results
from job.run_folder import RunFolder
from job.storage.place import Place
from job.themes.grouping import group_issues, name_groups
from job.themes.groups import ThemeGroup
from job.themes.issues import sample_issues
from job.themes.table import EarlierTheme, read_themes, write_themes
from job.write import read_tables, write_table
from tests.job.make import record


def issue(event: str, cause: str | None, **fields: object) -> Issue:
    severity = "info" if cause is None else "high"
    return Issue(event, cause, "stated", None, severity, None, **fields)  # type: ignore[arg-type]


def results(path: Path, rows: list[tuple[Outcome, str, str | None]]) -> list[Place]:
    place = Place.of(path)
    made = [
        Result(record(f"{n} {event}"), "answered", outcome, (issue(event, cause),))
        for n, (outcome, event, cause) in enumerate(rows)
    ]
    write_table(place, [results_to_table(made)], RESULT_SCHEMA)
    return [place]


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


Key = tuple[str, str, str | None]


@dataclass
class Grouped:
    """A run's themes: the theme of each issue by outcome, event and cause, and their names."""

    groups: list[ThemeGroup]
    themes: dict[Key, str | None]
    names: dict[str, ThemeName]


def group(
    paths: list[Place], folder: Path, earlier: Sequence[EarlierTheme] = (), limit: int = 100
) -> Grouped:
    """Group, finish and name as a run does; themes.parquet is in `folder`."""
    folder.mkdir(exist_ok=True)
    grouped = group_issues(paths, earlier, limit)
    tally = finish_results(RunFolder(Place.of(folder)), paths, grouped.index)
    groups, names = name_groups(grouped, tally, "en")
    write_themes(Place.of(folder / "themes.parquet"), groups, names, grouped.space)
    themes: dict[Key, str | None] = {}
    for table in read_tables(RunFolder(Place.of(folder)).result_files()):
        for result in table_to_results(table):
            for each in result.issues:
                themes[result.outcome or "", each.event, each.cause] = each.theme
    return Grouped(groups, themes, names)


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Grouped, Path]:
    folder = tmp_path_factory.mktemp("first")
    paths = results(folder / "a.parquet", [*REFUNDS, *PRINTER, *PRAISE, *OTHERS])
    return group(paths, folder), folder / "themes.parquet"


def test_issues_of_problems_and_praise_have_one_theme_each(first_day: tuple[Grouped, Path]) -> None:
    grouped, _ = first_day
    refund = {grouped.themes[key] for key in REFUNDS}
    printer = {grouped.themes[key] for key in PRINTER}
    praise = {grouped.themes[key] for key in PRAISE}
    assert len(refund) == len(printer) == len(praise) == 1
    assert refund | printer | praise == {group.id for group in grouped.groups}
    assert {grouped.themes[key] for key in OTHERS if key in grouped.themes} == {None}
    assert [group.count for group in grouped.groups] == [3, 2, 1]
    assert set(grouped.names) == {group.id for group in grouped.groups}


def test_the_order_of_the_files_changes_nothing(
    first_day: tuple[Grouped, Path], tmp_path: Path
) -> None:
    paths = [
        *results(tmp_path / "b.parquet", PRAISE + list(reversed(PRINTER))),
        *results(tmp_path / "c.parquet", [*OTHERS, *reversed(REFUNDS)]),
    ]
    again = group(paths, tmp_path)
    assert again.themes == first_day[0].themes
    assert again.names == first_day[0].names


def test_a_theme_keeps_its_id_on_the_next_day(
    first_day: tuple[Grouped, Path], tmp_path: Path
) -> None:
    grouped, table = first_day
    reworded: list[tuple[Outcome, str, str | None]] = [
        ("problem", "my refund is late again", "refunds wait for a weekly approval by finance"),
        ("problem", "还没收到退款", "退款要等财务每周审批"),
    ]
    earlier = read_themes(Place.of(table))
    assert {theme.id for theme in earlier} == {group.id for group in grouped.groups}
    paths = results(tmp_path / "d.parquet", reworded)
    again = group(paths, tmp_path / "again", earlier)
    assert {again.themes[key] for key in reworded} == {grouped.themes[REFUNDS[0]]}
    alone = group(paths, tmp_path / "alone")
    assert {alone.themes[key] for key in reworded} != {grouped.themes[REFUNDS[0]]}


def test_a_day_without_issues_has_no_themes(tmp_path: Path) -> None:
    grouped = group(results(tmp_path / "a.parquet", OTHERS[:1]), tmp_path)
    assert grouped.groups == []
    assert read_themes(Place.of(tmp_path / "nowhere.parquet")) == []


def test_issues_that_say_the_same_are_counted_together(tmp_path: Path) -> None:
    sample = sample_issues(results(tmp_path / "a.parquet", [*PRINTER, *PRINTER]))
    assert [details.total() for details in sample.details.values()] == [2, 2]
    assert sorted(sample.counts.values()) == [2, 2]


def test_of_more_issues_than_are_grouped_those_worded_alike_join_and_others_stay_alone(
    tmp_path: Path,
) -> None:
    late = "finance approves refunds once a week"
    told: list[tuple[int, str, str]] = [
        (5, "the refund has not arrived", late),
        (5, "the refund has not come", "refunds are approved once a week"),
        (4, "the printer jams on every page", "the rollers are worn out"),
        (4, "the printer jams", "worn rollers in the printer"),
    ]
    often: list[tuple[Outcome, str, str | None]] = [
        ("problem", event, cause) for times, event, cause in told for _ in range(times)
    ]
    rare: list[tuple[Outcome, str, str | None]] = [
        ("problem", "the refund still has not arrived", "finance approves refunds weekly"),
        ("problem", "no refund has arrived", late),
        ("problem", "the printer jams again", "the rollers are worn"),
        ("problem", "an elephant sat on the piano", "nobody closed the gate"),
    ]
    paths = results(tmp_path / "a.parquet", [*often, *rare])
    # Half of the sample are the most frequent; which of the rare are drawn must not matter.
    grouped = group(paths, tmp_path, limit=6)
    refund, printer = grouped.themes[often[0]], grouped.themes[often[-1]]
    assert [grouped.themes[key] for key in rare[:3]] == [refund, refund, printer]
    assert grouped.themes[rare[3]] not in (refund, printer)
    assert {g.id: g.count for g in grouped.groups}[refund or ""] == 12
    assert "All 12 issues are high" in grouped.names[refund or ""].severity_reason
