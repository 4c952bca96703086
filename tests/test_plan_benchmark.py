"""What the benchmark of plans compares."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import orjson
import pytest

from scripts.benchmarks import plan
from scripts.benchmarks.plan_sets import halves_of_lines, halves_of_list


def test_a_set_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = Namespace(folder=tmp_path, records=300, seed=3, only="hadop")
    assert plan.run(args) == 2
    assert "there are: seed day, 300" in capsys.readouterr().out


def test_the_second_run_has_other_records_than_the_first(tmp_path: Path) -> None:
    log, talks = tmp_path / "a.log", tmp_path / "b.json"
    log.write_text("1\n2\n3\n", encoding="utf-8")
    talks.write_bytes(orjson.dumps([{"n": 1}, {"n": 2}, {"n": 3}]))
    (tmp_path / "out").mkdir()
    (first,), (second,) = halves_of_lines(log, tmp_path / "out")
    assert (first.read_text(encoding="utf-8"), second.read_text(encoding="utf-8")) == (
        "1\n3\n",
        "2\n",
    )
    (first,), (second,) = halves_of_list(talks, tmp_path / "out")
    assert orjson.loads(first.read_bytes()) == [{"n": 1}, {"n": 3}]
    assert orjson.loads(second.read_bytes()) == [{"n": 2}]
