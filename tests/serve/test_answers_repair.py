"""A damaged store is set aside, what can be read of it is taken over, and asking goes on."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from serve.ask import answers_repair, answers_salvage
from serve.ask.answers import Answers, answer_key
from serve.ask.answers_actor import AnswersActor
from serve.ask.answers_file import DamagedStore, ForeignFile, NewerStore
from serve.ask.answers_repair import LastingAnswers, copies_beside, files_set_aside

COUNT = 1500
KEYS = [answer_key(str(n)) for n in range(COUNT)]
ROWS = {key: b'{"answer":{"text":"%s"}}' % (b"%d " % n * 20) for n, key in enumerate(KEYS)}
LATER = answer_key("later")
PAGE = 4096


def write_store(path: Path) -> None:
    with Answers(path) as answers:
        answers.put_many(ROWS.items())
        answers.keep_learned("pace", b"[3]")


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_store_damaged_in_the_middle_of_a_run_costs_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    pages = path.stat().st_size // PAGE
    with LastingAnswers(path) as answers:
        assert answers.learned("pace") == b"[3]"
        overwrite(path, pages // 2 * PAGE, b"\xff" * 4 * PAGE)
        damaged = path.read_bytes()
        found = answers.get_many(KEYS)
        answers.put_many([(LATER, b"1")])
        assert COUNT * 0.9 < len(found) < COUNT
        assert found.items() <= ROWS.items()
        assert answers.get_many([LATER]) == {LATER: b"1"}
        assert answers.learned("pace") == b"[3]"
        (damage,) = answers.damages()
    assert damage.salvaged == len(found)
    assert not damage.whole
    (copy,) = copies_beside(path)
    assert copy.name == damage.copy
    assert copy.read_bytes() == damaged
    with LastingAnswers(path) as answers:
        assert answers.get_many(KEYS) == found
        assert answers.damages() == [damage]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_of_a_store_that_was_cut_short_the_rest_is_taken_over(tmp_path: Path, share: float) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    with LastingAnswers(path) as answers:
        found = answers.get_many(KEYS)
    assert share * 0.7 < len(found) / COUNT < 1
    assert found.items() <= ROWS.items()


@pytest.mark.parametrize("torn", [16, 100, 512, 4096])
def test_a_torn_beginning_loses_no_answer(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    overwrite(path, 0, b"\xa5" * torn)
    damaged = path.read_bytes()
    with LastingAnswers(path) as answers:
        answers.put_many([(LATER, b"1")])
        assert answers.get_many([*KEYS, LATER]) == ROWS | {LATER: b"1"}
        assert answers.learned("pace") == b"[3]"
        (damage,) = answers.damages()
    assert damage.salvaged == COUNT
    assert [copy.read_bytes() for copy in copies_beside(path)] == [damaged]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", damage.copy]


def test_a_journal_goes_with_its_store(tmp_path: Path) -> None:
    path, wal = tmp_path / "a.db", tmp_path / "a.db-wal"
    write_store(path)
    with Answers(path) as answers:
        answers.put_many([(LATER, b"1")])
        whole = path.read_bytes(), wal.read_bytes()
    path.write_bytes(whole[0])
    overwrite(path, 2 * PAGE, b"\xff" * (len(whole[0]) - 2 * PAGE))
    damaged = path.read_bytes()
    wal.write_bytes(whole[1])
    with LastingAnswers(path) as lasting:
        (damage,) = lasting.damages()
    aside = {file.name.removeprefix(damage.copy): file for file in files_set_aside(path)}
    assert aside["-wal"].read_bytes() == whole[1]
    assert aside[""].read_bytes() == damaged


@pytest.mark.parametrize("torn", [0, 40, 5_000, 200_000])
def test_a_damaged_journal_costs_only_what_was_in_it(tmp_path: Path, torn: int) -> None:
    path, wal = tmp_path / "a.db", tmp_path / "a.db-wal"
    write_store(path)
    with Answers(path) as store:
        store.put_many((answer_key(f"new {n}"), b"{}") for n in range(COUNT))
        image = wal.read_bytes()
    write = bytearray(image)
    write[torn : torn + 2000] = b"\xa5" * 2000
    write_store(path)
    wal.write_bytes(write)
    with LastingAnswers(path) as answers:
        answers.put_many([(LATER, b"1")])
        assert answers.get_many([LATER]) == {LATER: b"1"}
        assert answers.get_many(KEYS).items() <= ROWS.items()


def test_no_copy_is_ever_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    path = tmp_path / "a.db"
    for _ in range(3):
        write_store(path)
        overwrite(path, 0, b"torn")
        LastingAnswers(path).close()
    name = "a.db.damaged-20270115-080000"
    assert [copy.name for copy in copies_beside(path)] == [name, f"{name}-2", f"{name}-3"]


def test_other_peoples_files_are_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(b"remember the milk\n" * 100)
    with pytest.raises(ForeignFile):
        LastingAnswers(path)
    with closing(sqlite3.connect(tmp_path / "songs.db")) as other, other:
        other.execute("CREATE TABLE songs (title)")
    with pytest.raises(ForeignFile):
        LastingAnswers(tmp_path / "songs.db")
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_locked_store_and_a_full_disk_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with LastingAnswers(path) as answers:
        answers.put_many([(KEYS[0], b"0")])
        assert answers._answers is not None
        answers._answers.connection.execute("PRAGMA busy_timeout = 1")
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                answers.put_many([(KEYS[1], b"1")])
        pages = answers._answers.connection.execute("PRAGMA page_count").fetchone()[0]
        answers._answers.connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            answers.put_many(list(ROWS.items()))
        answers.put_many([(KEYS[2], b"2")])
        assert answers.get_many(KEYS) == {KEYS[0]: b"0", KEYS[2]: b"2"}
    assert not files_set_aside(path)


def test_what_was_learned_is_not_worth_a_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    actor = AnswersActor(path)
    actor.keep_learned("pace", b"1")
    assert isinstance(actor._answers, LastingAnswers)
    connection = actor._answers._opened().connection
    connection.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        actor.keep_learned("pace", b"2")
    assert actor.learned("pace") == b"1"
    actor.keep_learned("pace", b"3")
    assert actor.learned("pace") == b"3"


def test_a_store_that_is_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with LastingAnswers(path) as answers:
        answers.put_many([(KEYS[0], b"0")])
        path.rename(tmp_path / "elsewhere.db")
        answers.put_many([(KEYS[1], b"1")])
    with LastingAnswers(path) as answers:
        assert answers.get_many(KEYS) == {KEYS[1]: b"1"}


def test_a_disk_that_damages_every_store_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    with LastingAnswers(path) as answers:

        def damaged(inner: Answers) -> None:
            raise DamagedStore("again")

        with pytest.raises(DamagedStore):
            answers._do(damaged)
    assert len(copies_beside(path)) == answers_repair.MAX_SET_ASIDE


def test_salvaging_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_salvage, "SALVAGE_SECONDS", 0.0)
    path = tmp_path / "a.db"
    write_store(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - PAGE)
    with LastingAnswers(path) as answers:
        (damage,) = answers.damages()
    assert (damage.salvaged, damage.whole) == (answers_salvage._AT_ONCE, False)


@pytest.fixture(scope="module")
def whole_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        write_store(path)
        return path.read_bytes()


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    at=st.floats(0, 1, exclude_max=True),
    data=st.binary(min_size=1, max_size=64),
    times=st.integers(1, 300),
    opened=st.booleans(),
)
@example(at=0.0, data=b"\xff", times=20, opened=False)
@example(at=0.0, data=b"\0", times=100, opened=True)
def test_no_damage_ends_a_run(
    whole_store: bytes, at: float, data: bytes, times: int, opened: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    path = folder / "a.db"
    path.write_bytes(whole_store)
    answers = AnswersActor(path) if opened else None
    overwrite(path, int(at * len(whole_store)), data * times)
    try:
        answers = answers or AnswersActor(path)
    except (ForeignFile, NewerStore):
        assert at * len(whole_store) < 100
        assert not files_set_aside(path)
    else:
        answers.get_many(KEYS)
        answers.put_many([(LATER, b"1")])
        answers.keep_learned("later", b"1")
        assert answers.learned("later") == b"1"
    shutil.rmtree(folder)
