"""The parts of the benchmarks of the store: what they put and get, and what a rerun may ask."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from scripts.benchmarks.answers import Size, batches, grown, plain, store
from scripts.benchmarks.rerun import Rerun, append, bars_of
from scripts.days.files import write_day
from scripts.days.seed_day import make_seed_day

FIRST = Rerun(0, 30.0, 10, 2, ["a", "b", "c"])
AGAIN = Rerun(0, 12.0, 0, 0, [])
GROWN = Rerun(0, 14.0, 3, 1, ["d", "e", "e"])


def runs(**changed: Rerun) -> dict[str, Rerun]:
    return {"first": FIRST, "again": AGAIN, "grown": GROWN, "elsewhere": AGAIN} | changed


def test_a_rerun_that_asks_nothing_twice_holds_every_bar() -> None:
    assert all(bar.holds for bar in bars_of(runs(), more=2, most_seconds=15.0))


@pytest.mark.parametrize(
    ("name", "run", "failing"),
    [
        ("again", dataclasses.replace(AGAIN, requests=1), "requests, the same again"),
        ("again", dataclasses.replace(AGAIN, seconds=15.1), "seconds, the same again"),
        ("grown", dataclasses.replace(GROWN, records=["d", "a"]), "of these known before"),
        ("grown", dataclasses.replace(GROWN, records=["d"]), "records in calls, 1 % more"),
        ("elsewhere", dataclasses.replace(AGAIN, records=["a"]), "records in calls, other files"),
    ],
)
def test_each_bar_can_fail(name: str, run: Rerun, failing: str) -> None:
    bars = bars_of(runs(**{name: run}), more=2, most_seconds=15.0)
    assert [bar.what for bar in bars if not bar.holds] == [failing]


def test_records_are_added_at_the_ends_of_the_files(tmp_path: Path) -> None:
    day, more = make_seed_day(1, 60, 0), make_seed_day(2, 60, 0)
    write_day(tmp_path / "day", day)
    before = {file.name: file.read_bytes() for file in (tmp_path / "day").iterdir()}
    append(more, tmp_path / "day")
    write_day(tmp_path / "both", [*day, *more])
    for name, data in before.items():
        grown_file = (tmp_path / "day" / name).read_bytes()
        assert grown_file.startswith(data)
        assert grown_file == (tmp_path / "both" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "day"]


def test_each_way_puts_and_gets_the_same_answers(tmp_path: Path) -> None:
    size = Size(answers=70, batch=32)
    keys = [key for batch in batches(size) for key, _ in batch]
    assert len(set(keys)) == 70
    for way in (plain, store):
        took = way(tmp_path / f"{way.__name__}.db", size)
        assert took.put > 0
        assert took.get > 0
    memory = grown(tmp_path / "grown.db", size)
    assert 10 < memory.peak <= memory.later
