"""What a file at the store's path is: ours, older, newer, another's, damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from serve.ask.answers import Answers, answer_key
from serve.ask.answers_file import DamagedStore, ForeignFile, NewerStore

KEYS = [answer_key(str(n)) for n in range(300)]
ROWS = [(key, b'{"answer":{"n":%d}}' % n) for n, key in enumerate(KEYS)]
BEFORE = (
    "CREATE TABLE answers (key BLOB PRIMARY KEY, value BLOB NOT NULL, stored_at INTEGER NOT NULL)"
)
LEARNED_BEFORE = (
    "CREATE TABLE learned (name TEXT PRIMARY KEY, value BLOB NOT NULL, stored_at INTEGER NOT NULL)"
)


def write_version_0(path: Path, learned: bool = False) -> None:
    """A store as it was written before stores had a version."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(BEFORE + " WITHOUT ROWID")
        connection.executemany("INSERT INTO answers VALUES (?, ?, 7)", ROWS)
        if learned:
            connection.execute(LEARNED_BEFORE + " WITHOUT ROWID")
            connection.execute("INSERT INTO learned VALUES ('x', x'31', 7)")


def write_store(path: Path) -> None:
    with Answers(path) as answers:
        answers.put_many(ROWS)


def write_other_database(path: Path, statement: str = "CREATE TABLE songs (title)") -> None:
    """Another program's, with a journal as after a crash."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(statement)
    connection.commit()
    beside = path.with_name(path.name + "-wal")
    whole = path.read_bytes(), beside.read_bytes()
    connection.close()
    path.write_bytes(whole[0])
    beside.write_bytes(whole[1])


def all_bytes(folder: Path) -> dict[str, bytes]:
    """Every file but the index of a journal, which whoever reads has to make."""
    return {f.name: f.read_bytes() for f in folder.iterdir() if not f.name.endswith("-shm")}


def user_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("learned", [False, True])
def test_an_older_store_is_taken_over_where_it_is(tmp_path: Path, learned: bool) -> None:
    path = tmp_path / "a.db"
    write_version_0(path, learned)
    for _ in range(2):
        with Answers(path) as answers:
            assert answers.get_many(KEYS) == dict(ROWS)
            assert answers.get_many(KEYS, since=8) == {}
            assert answers.learned("x") == (b"1" if learned else None)
    assert user_version(path) == 1


def test_taking_over_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_version_0(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        # What a half-done change would leave in the way.
        connection.execute("CREATE TABLE before (x)")
    with pytest.raises(DamagedStore):
        Answers(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (300,)
    assert user_version(path) == 0


def test_a_store_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    before = all_bytes(tmp_path)
    with pytest.raises(NewerStore, match="version 2"):
        Answers(path)
    assert all_bytes(tmp_path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE songs (title)",
        "CREATE TABLE answers (question, answer)",
        "PRAGMA user_version = 3",
        "PRAGMA application_id = 5",
    ],
)
def test_another_programs_database_is_left_as_it_is(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "songs.db"
    write_other_database(path, statement)
    before = all_bytes(tmp_path)
    with pytest.raises(ForeignFile):
        Answers(path)
    assert all_bytes(tmp_path) == before


@pytest.mark.parametrize(
    "data",
    [
        b"what I wrote down\n" * 900,
        b"CREATE TABLE answers (key BLOB PRIMARY KEY, value BLOB NOT NULL);\n",
        b"\x7fELF\0\0" + bytes(range(256)) * 200,
        b"x",
    ],
)
def test_a_users_own_file_is_left_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(ForeignFile):
        Answers(path)
    assert all_bytes(tmp_path) == {"notes.txt": data}


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%20.db"
    path.touch()
    write_store(path)
    assert user_version(path) == 1
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("torn", [16, 100, 512, 4096])
def test_a_store_with_a_torn_beginning_is_known_as_one(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    for filling in (b"\0", b"\xff"):
        with path.open("r+b") as file:
            file.write(filling * torn)
        with pytest.raises(DamagedStore):
            Answers(path)


@pytest.mark.parametrize("left", [1, 0.5])
def test_a_store_that_was_cut_short_is_damaged(tmp_path: Path, left: float) -> None:
    path = tmp_path / "a.db"
    write_store(path)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * left) - 1)
    with pytest.raises(DamagedStore):
        Answers(path)


def test_a_locked_store_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.ask.answers_file.BUSY_SECONDS", 0.01)
    path = tmp_path / "a.db"
    write_store(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Answers(path)
