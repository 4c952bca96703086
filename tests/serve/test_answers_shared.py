"""A store that is damaged while several runs use it is set aside once, and none loses an answer."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from serve.ask.answers import answer_key
from serve.ask.answers_repair import LastingAnswers, copies_beside
from tests.serve.test_answers_repair import COUNT, KEYS, PAGE, overwrite, write_store


def test_of_two_runs_on_one_store_one_sets_it_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    one, other = LastingAnswers(path), LastingAnswers(path)
    overwrite(path, 2 * PAGE, b"\xff" * (path.stat().st_size - 2 * PAGE))
    one.get_many(KEYS)
    one.put_many([(KEYS[0], b"one")])
    # The other one has the old file open; it finds the new one before it stores anything.
    other.put_many([(KEYS[1], b"other")])
    other.close()
    assert one.get_many(KEYS[:2]) == {KEYS[0]: b"one", KEYS[1]: b"other"}
    one.close()
    assert len(copies_beside(path)) == 1
    with LastingAnswers(path) as answers:
        assert answers.get_many(KEYS[:2]) == {KEYS[0]: b"one", KEYS[1]: b"other"}


def _use(path: Path, number: int, ready: object) -> None:
    with LastingAnswers(path) as answers:
        ready.wait()  # type: ignore[attr-defined]
        for start in range(0, COUNT, 100):
            answers.get_many(KEYS[start : start + 100])
        answers.put_many([(answer_key(f"of {number}"), b"{}")])


@pytest.mark.slow
def test_processes_that_find_the_damage_together_lose_nothing_they_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(4)
    users = [context.Process(target=_use, args=(path, n, ready)) for n in range(3)]
    for user in users:
        user.start()
    while ready.n_waiting < 3:
        assert all(user.is_alive() for user in users)
    overwrite(path, 2 * PAGE, b"\xff" * (path.stat().st_size - 2 * PAGE))
    ready.wait()
    for user in users:
        user.join()
    assert [user.exitcode for user in users] == [0, 0, 0]
    with LastingAnswers(path) as answers:
        stored = answers.get_many([answer_key(f"of {n}") for n in range(3)])
        assert len(stored) == 3
        assert len(answers.damages()) == len(copies_beside(path)) == 1
