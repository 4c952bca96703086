"""The same work on many parts, in this process and on a real Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from job.errors import LedgerError
from job.spread import held, spread
from job.themes.issues import sample_issues
from tests.job.test_issues import Row, same, write


@pytest.fixture
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def times(part: int, factor: int) -> int:
    return part * factor


def die_once(mark: Path) -> str:
    """Kills its process the first time."""
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return mark.name


def refuse(part: int) -> int:
    raise LedgerError(f"part {part} is damaged")


def test_parts_keep_their_order() -> None:
    assert list(spread(times, range(50), 3)) == list(range(0, 150, 3))


def test_a_part_is_begun_only_when_it_is_wanted() -> None:
    wanted = iter(range(10))
    assert next(spread(times, wanted, 1)) == 0
    assert next(wanted) == 1


@pytest.mark.ray
def test_tasks_give_what_this_process_gives(cluster: None, tmp_path: Path) -> None:
    assert list(spread(times, range(50), held(3))) == list(range(0, 150, 3))
    rows: list[Row] = [(f"word{'abcdefgh'[i % 8]}", "problem", "low") for i in range(40)]
    paths = write(tmp_path, rows, 3)
    in_tasks = sample_issues(paths, 4)
    ray.shutdown()
    assert same(in_tasks, sample_issues(paths, 4))


@pytest.mark.ray
def test_a_killed_worker_loses_no_part_and_an_error_arrives_as_it_is(
    cluster: None, tmp_path: Path
) -> None:
    marks = [tmp_path / str(n) for n in range(3)]
    assert list(spread(die_once, marks)) == ["0", "1", "2"]
    with pytest.raises(LedgerError, match="part 1 is damaged"):
        list(spread(refuse, [1]))
