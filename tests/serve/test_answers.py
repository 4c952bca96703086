from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.answers import Answers, answer_key


def test_what_was_put_is_there_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.db"
    keys = [answer_key(str(n)) for n in range(1200)]
    with Answers(path) as answers:
        answers.put_many((key, b"v") for key in keys)
    with Answers(path) as answers:
        assert answers.get_many([*keys, answer_key("other")]) == dict.fromkeys(keys, b"v")
        assert len(answers) == 1200
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_first_answer_stays_unless_it_is_asked_anew(tmp_path: Path) -> None:
    key = answer_key("k")
    with Answers(tmp_path / "a.db") as answers:
        answers.put_many([(key, b"first")])
        answers.put_many([(key, b"second")])
        assert answers.get_many([key]) == {key: b"first"}
        answers.put_many([(key, b"third")], replace=True)
        assert answers.get_many([key]) == {key: b"third"}


def test_only_what_was_stored_since_then_is_found(tmp_path: Path) -> None:
    key = answer_key("k")
    with Answers(tmp_path / "a.db") as answers:
        answers.put_many([(key, b"v")])
        assert answers.get_many([key], since=0) == {key: b"v"}
        assert answers.get_many([key], since=2**40) == {}


def test_two_runs_share_one_store(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.db") as one, Answers(tmp_path / "a.db") as other:
        one.put_many([(answer_key("1"), b"1")])
        other.put_many([(answer_key("2"), b"2")])
        assert len(one.get_many([answer_key("1"), answer_key("2")])) == 2


def test_what_a_run_learned_is_there_for_the_next_one(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.db") as answers:
        assert answers.learned("output") is None
        answers.keep_learned("output", b"[1]")
        answers.keep_learned("output", b"[2]")
        answers.keep_learned("other", b"{}")
    with Answers(tmp_path / "a.db") as answers:
        assert answers.learned("output") == b"[2]"
        assert answers.learned("other") == b"{}"
        assert len(answers) == 0


def test_what_was_learned_before_a_moment_can_be_left_alone(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.db", clock=lambda: 200.0) as answers:
        answers.keep_learned("output", b"1")
        assert answers.learned("output", since=200.5) == b"1"
        assert answers.learned("output", since=201.0) is None


def test_what_is_old_is_forgotten_on_request(tmp_path: Path) -> None:
    now = 100.0
    with Answers(tmp_path / "a.db", clock=lambda: now) as answers:
        answers.put_many([(answer_key("1"), b"1")])
        answers.keep_learned("once", b"1")
        answers.keep_learned("daily", b"1")
        now = 200.0
        answers.put_many([(answer_key("2"), b"2")])
        answers.keep_learned("daily", b"2")
        assert answers.prune(before=100) == (0, 0)
        assert answers.prune(before=200) == (1, 1)
        assert answers.get_many([answer_key("1"), answer_key("2")]) == {answer_key("2"): b"2"}
        assert (answers.learned("once"), answers.learned("daily")) == (None, b"2")


def test_what_was_forgotten_is_no_longer_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Answers(path) as answers:
        answers.put_many([(answer_key("1"), b'"a customer wrote this"')])
    assert b"a customer wrote this" in path.read_bytes()
    with Answers(path) as answers:
        answers.prune(before=2**40)
    assert b"a customer wrote this" not in path.read_bytes()


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    keys = [answer_key(str(n)) for n in range(4)]

    def broken() -> Iterator[tuple[bytes, bytes]]:
        yield keys[0], b"0"
        raise RuntimeError("no more")

    with Answers(tmp_path / "a.db") as answers:
        with pytest.raises(RuntimeError):
            answers.put_many(broken())
        answers.put_many([(keys[1], b"1")])
        assert answers.get_many(keys) == {keys[1]: b"1"}


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_have_different_keys(one: list[str], other: list[str]) -> None:
    assert (answer_key(*one) == answer_key(*other)) == (one == other)
