"""`fupan answers`: what it shows, what it forgets, what it hands out, what it refuses."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from job.answers.care import check_answers
from job.answers.recalls import NAME, Recalls, decode_recalls
from job.cli import app
from job.config import resolve
from job.flags import Flags
from job.progress import Progress
from serve.ask.answers import Answers, answer_key
from serve.ask.answers_repair import LastingAnswers
from serve.ask.ask import CallCounts
from serve.ask.spend import Call
from serve.ask.spend_account import Row
from serve.ask.spend_journal import FILE, SpendJournal

DAY = 86_400
ASKED = Progress(answered=40, review=5, failed=5)
CALLS = CallCounts(requests=10, tokens_in=5000, tokens_out=1000)


def command(path: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(app, ["answers", *map(str, words), "--answers", str(path)])


def shown(path: Path, *words: str) -> dict[str, Any]:
    result = command(path, *words, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = orjson.loads(result.stdout)
    return found


def value(model: str | None, text: str) -> bytes:
    return orjson.dumps({"answer": {"text": text}} | ({"model": model} if model else {}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """30 answers of one model, 10 days old; 20 of another and one of a naming call, of today."""
    path, now = tmp_path / "a.db", time.time()
    with Answers(path, clock=lambda: now - 10 * DAY) as store:
        store.put_many((answer_key(f"l{n}"), value("large", "x" * 900)) for n in range(30))
        store.keep_learned("once", b"1")
    with Answers(path) as store:
        store.put_many((answer_key(f"s{n}"), value("small", "x" * 900)) for n in range(20))
        store.put_many([(answer_key("name"), value(None, "x"))])
        recalls = Recalls(now - 10 * DAY)
        recalls.add("large", ASKED, CALLS)
        recalls.add("large", replace(ASKED, recalled=100, from_store=100), CALLS)
        store.keep_learned(NAME, recalls.encode())
    return path


def test_stats_say_what_is_held_and_what_recalling_saved(path: Path) -> None:
    found = shown(path)
    assert (found["path"], found["version"], found["answers"]) == (str(path), 1, 51)
    assert found["bytes"] == path.stat().st_size
    assert found["models"] == [
        {"model": "large", "answers": 30},
        {"model": "small", "answers": 20},
        {"model": None, "answers": 1},
    ]
    assert found["oldest"] < found["newest"]
    assert [entry["name"] for entry in found["learned"]] == ["once", NAME]
    # 100 records asked took 20 calls; 100 were recalled.
    assert found["recalled"]["records"] == 100
    assert found["recalled"]["runs"] == 2
    assert found["recalled"]["saved"] == {"requests": 20, "tokens_in": 10_000, "tokens_out": 2000}
    words = command(path, "stats").stdout
    assert "30 by large" in words
    assert "about 20 calls" in words
    assert command(path, "--quiet").stdout == ""


def test_stats_name_the_damaged_stores_beside(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"torn")
    with LastingAnswers(path) as answers:
        (damage,) = answers.damages()
    (copy,) = shown(path)["damaged"]
    assert copy["file"] == damage.copy
    assert copy["bytes"] > 10_000
    assert damage.copy in command(path).stdout


def test_pruning_forgets_by_age_and_frees_the_disk(path: Path) -> None:
    with Answers(path):  # Another run that has the store open does not keep it large.
        planned = shown(path, "prune", "--older-than", "5", "--dry-run")
        assert (planned["answers"], planned["learned"], planned["dry_run"]) == (30, 1, True)
        assert shown(path)["answers"] == 51
        done = shown(path, "prune", "--older-than", "5")
    assert (done["answers"], done["learned"]) == (30, 1)
    assert done["bytes_after"] < done["bytes_before"] * 0.7
    left = shown(path)
    assert {row["model"]: row["answers"] for row in left["models"]} == {"small": 20, None: 1}
    assert [entry["name"] for entry in left["learned"]] == [NAME]


def test_pruning_forgets_what_old_runs_spent_but_nothing_a_cap_may_need(path: Path) -> None:
    call = Call("m", 10, 10, 60.0, {("operation", "a.log"): 1.0})
    with SpendJournal(path.with_name(FILE)) as journal:
        for run, days in (("old", 40), ("recent", 20)):
            at = time.time() - days * DAY
            row = Row(run, "c", call, "USD", Decimal(1), None, None, None, at)
            journal.begin(run, [row])
    assert shown(path, "prune", "--older-than", "5", "--dry-run")["attempts"] == 1
    assert shown(path, "prune", "--older-than", "50")["attempts"] == 0
    said = command(path, "prune", "--older-than", "5").stdout
    assert "attempts that were forgotten of what old runs spent: 1" in said
    with SpendJournal(path.with_name(FILE)) as journal:
        assert [len([*journal.rows(run)]) for run in ("old", "recent")] == [0, 1]


def test_pruning_by_model_leaves_what_was_learned(path: Path) -> None:
    assert shown(path, "prune", "--model", "large", "--older-than", "11")["answers"] == 0
    assert shown(path, "prune", "--model", "small")["answers"] == 20
    assert shown(path)["answers"] == 31
    assert len(shown(path)["learned"]) == 2


def test_pruning_a_model_that_is_not_there_names_those_that_are(path: Path) -> None:
    said = command(path, "prune", "--model", "smal").stdout
    assert "no answer says it is of smal; held are those of large, small" in said
    assert "no answer says" not in command(path, "prune", "--model", "small").stdout


def test_export_writes_a_line_an_answer(path: Path, tmp_path: Path) -> None:
    result = command(path, "export")
    rows = [orjson.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 51
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    by_key = {row["key"]: row for row in rows}
    row = by_key[answer_key("s1").hex()]
    assert row["model"] == "small"
    assert row["answer"] == orjson.loads(value("small", "x" * 900))
    out = tmp_path / "answers.jsonl"
    assert "51 answers" in command(path, "export", "--out", out).stdout
    assert out.read_bytes() == result.stdout_bytes


def test_an_export_that_fails_leaves_the_old_file(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    out.write_text("before")
    with path.open("r+b") as file:
        file.seek(4096 * 4)
        file.write(b"\xff" * 4096 * 3)
    assert command(path, "export", "--out", out).exit_code == 1
    assert out.read_text() == "before"
    assert sorted(file.name for file in tmp_path.iterdir() if "part" in file.name) == []


@pytest.mark.parametrize("spelled", ["a.db", "link/a.db", "other.db", "real/../a.db"])
@pytest.mark.parametrize("named", ["a.db", "link/a.db", "other.db"])
def test_the_store_is_not_exported_over_itself(path: Path, named: str, spelled: str) -> None:
    (path.parent / "link").symlink_to(path.parent)
    (path.parent / "real").mkdir()
    (path.parent / "other.db").symlink_to(path)
    result = command(path.parent / named, "export", "--out", path.parent / spelled)
    assert result.exit_code == 2
    assert shown(path)["answers"] == 51


@pytest.mark.parametrize(
    "name",
    ["a.db-wal", "a.db-shm", "a.db-journal", "spend.db", "mask.key", "a.db.damaged-20260101-0000"],
)
def test_what_belongs_to_the_store_is_not_exported_over(
    path: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    if "damaged" in name:
        (tmp_path / name).write_text("what could not be read")
    result = command(path, "export", "--out", tmp_path / "link" / name)
    assert result.exit_code == 2
    assert "belongs to it" in result.stderr


def test_an_export_is_its_owners_alone(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    assert command(path, "export", "--out", out).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("days", ["1e18", "1e300", "1e306"])
def test_nothing_is_older_than_the_epoch(path: Path, days: str) -> None:
    assert shown(path, "prune", "--older-than", days, "--dry-run")["answers"] == 0
    assert shown(path, "prune", "--older-than", days)["answers"] == 0


def test_answers_may_be_kept_as_long_as_one_likes(path: Path, tmp_path: Path) -> None:
    config = tmp_path / "fupan.yaml"
    config.write_text(f"privacy: {{keep_days: 1{'0' * 400}}}\n")
    flags = Flags(inputs=("x.log",), provider="extractive", config=str(config), answers=str(path))
    check_answers(resolve(flags))
    assert shown(path)["answers"] == 51


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error(path: Path) -> None:
    words = [sys.executable, "-m", "job", "answers", "export", "--answers", str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prune"], "say what"),
        (["prune", "--older-than", "-1"], "number of days"),
        (["prune", "--older-than", "nan"], "number of days"),
        (["stats", "--model", "x"], "belong to"),
        (["export", "--dry-run"], "belong to"),
        (["prune", "--older-than", "1", "--out", "x"], "belongs to"),
        (["export", "--json"], "as JSON anyway"),
    ],
)
def test_options_of_another_action_are_wrong_usage(path: Path, words: list[str], said: str) -> None:
    result = command(path, *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert shown(path)["answers"] == 51


def test_where_there_is_no_store_none_is_made(tmp_path: Path) -> None:
    result = command(tmp_path / "none.db", "stats")
    assert result.exit_code == 2
    assert "no store of answers" in result.stderr
    assert not os.listdir(tmp_path)


def test_what_is_no_store_of_ours_is_left_alone(tmp_path: Path) -> None:
    other, newer, torn = tmp_path / "notes.txt", tmp_path / "newer.db", tmp_path / "torn.db"
    other.write_text("remember the milk")
    for path in (newer, torn):
        with Answers(path) as store:
            store.put_many([(answer_key("1"), b"1")])
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with torn.open("r+b") as file:
        file.write(b"torn")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path, code, said in (
        (other, 2, "is no store of answers"),
        (newer, 2, "newer version"),
        (torn, 1, "is damaged"),
    ):
        result = command(path, "prune", "--older-than", "0")
        assert result.exit_code == code
        assert said in result.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_recalled_records_to_be_reviewed_are_recalled_too() -> None:
    counted = Recalls(0.0)
    counted.add("m", Progress(answered=2000, review=1000), replace(CALLS, requests=100))
    for _ in range(5):
        counted.add("m", Progress(recalled=2000, review=1000, from_store=3000), CallCounts())
    assert counted.recalled == 15_000
    assert counted.saved()["requests"] == 500


def test_recalls_that_cannot_be_read_are_counted_anew() -> None:
    assert decode_recalls(b'{"since": 1, "models": {"m": 3}}', 5.0) == Recalls(5.0)
    counted = Recalls(1.0)
    counted.add("m", Progress(recalled=7, from_store=7), CALLS)
    assert counted.saved() == {"requests": 0, "tokens_in": 0, "tokens_out": 0}
    assert decode_recalls(counted.encode(), 5.0) == counted
