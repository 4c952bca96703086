from __future__ import annotations

import stat
from pathlib import Path

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


def test_old_answers_are_forgotten_on_request(tmp_path: Path) -> None:
    with Answers(tmp_path / "a.db") as answers:
        answers.put_many([(answer_key("1"), b"1")])
        assert answers.prune(before=0) == 0
        assert answers.prune(before=2**40) == 1
        assert len(answers) == 0


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_have_different_keys(one: list[str], other: list[str]) -> None:
    assert (answer_key(*one) == answer_key(*other)) == (one == other)
