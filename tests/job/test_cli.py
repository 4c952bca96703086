"""Exit codes and what is printed, without a cluster: everything here ends before Ray starts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from job import cli
from job.errors import JobError
from job.storage.hold import hold
from job.storage.place import Place

LINE = "2026-03-14 10:00:00 ERROR payment failed\n"
MODEL = ("--base-url", "https://llm.example/v1", "--model", "m")


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.log").write_text(LINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_API_KEY", "sk-good")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("FUPAN_TRACEBACK", raising=False)
    return tmp_path


def fupan(*words: str) -> Result:
    return CliRunner().invoke(cli.app, words)


def refused(*words: str) -> str:
    """What a command that cannot begin says: one line."""
    ended = fupan(*words)
    assert ended.exit_code == 2, ended.output
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("fupan: ")
    return lines[0]


def test_wrong_settings_are_exit_2(day: Path) -> None:
    assert "--rpm without a provider" in refused("run", "a.log", "--rpm", "60")
    assert "'nowhere' does not exist" in refused("run", "nowhere", "--quiet")
    assert "--sample" in refused("plan", "a.log", "--sample", "0")
    assert "no run.json" in refused("report", ".")


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_folder_of_something_else_has_no_report(day: Path, text: str) -> None:
    (day / "run.json").write_text(text)
    assert "run.json was not written by a run" in refused("report", ".")


def test_a_report_is_not_made_while_a_run_is_at_work_in_its_folder(day: Path) -> None:
    (day / "run.json").write_text('{"inputs": []}')
    with hold(Place.of(day)):
        assert "in use by another run" in refused("report", ".")


def test_an_out_that_is_a_file_is_exit_2(day: Path) -> None:
    assert "--out" in refused("run", "a.log", "--out", "a.log", "--quiet")
    said = refused("run", "a.log", "--out", "s3://id:secret@bucket/x", "--quiet")
    assert "environment" in said
    assert "secret@" not in said


def test_an_input_that_is_the_out_is_exit_2(day: Path) -> None:
    assert "is also --out" in refused("run", ".", "--out", ".", "--quiet")
    assert sorted(path.name for path in day.iterdir() if path.name != ".lock") == ["a.log"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text("no database, but a text of more than 16 bytes"), "no store"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.parent.joinpath("store").symlink_to(path / "x/y"), "cannot|no store"),
    ],
)
def test_answers_that_are_no_store_are_exit_2(
    day: Path, make: Callable[[Path], object], said: str
) -> None:
    make(day / "store")
    line = refused("run", "a.log", "--out", "x", "--answers", "store", "--quiet", *MODEL)
    assert "--answers" in line
    assert any(word in line for word in said.split("|"))


def test_a_key_that_cannot_be_one_is_exit_2_and_not_shown(
    day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-ключ")
    line = refused("run", "a.log", "--out", "x", *MODEL)
    assert "LLM_API_KEY" in line
    assert "ключ" not in line
    line = refused("run", "a.log", "--out", "x", *MODEL, "--api-key-env", "sk-hunter2")
    assert "--api-key-env" in line
    assert "hunter2" not in line


def test_a_context_without_room_for_a_record_is_exit_2(day: Path) -> None:
    line = refused("plan", "a.log", *MODEL, "--context", "500")
    assert "--context 500 leaves" in line
    assert "are needed" in line


def test_a_configuration_that_is_not_utf8_is_exit_2(day: Path) -> None:
    (day / "fupan.yaml").write_bytes("run: {out: 复盘}".encode("gb18030"))
    assert "fupan.yaml is not UTF-8" in refused("run", "a.log")


def test_plan_takes_the_words_of_run(day: Path) -> None:
    words = ("nowhere", "--out", "x", "--max-failed", "0.1", "--overwrite")
    assert "does not exist" in refused("plan", *words)
    assert "does not exist" in refused("run", *words, "--quiet")


def test_plan_that_cannot_go_on_has_written_nothing(day: Path) -> None:
    refused("plan", "a.log", *MODEL, "--context", "500")
    assert sorted(path.name for path in day.iterdir()) == ["a.log"]


def test_an_error_line_obeys_nobody(day: Path) -> None:
    line = refused("run", "gone\x1b[2J\u202e.log", "--quiet")
    assert "\x1b" not in line
    assert "\u202e" not in line


def failing(error: BaseException) -> Callable[..., object]:
    def resolve(*_: object) -> object:
        raise error

    return resolve


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device", "/out/x"), 1, "fupan: the disk is full"),
        (JobError("one\nFAKE: two \x1b[2J"), 1, "fupan: one FAKE: two \ufffd[2J"),
        (KeyboardInterrupt(), 4, "fupan: interrupted"),
    ],
)
def test_whatever_happens_is_told_in_one_line(
    day: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    monkeypatch.setattr("job.config.resolve", failing(error))
    ended = fupan("run", "a.log")
    assert ended.exit_code == code
    assert ended.stderr.startswith(said)
    assert len(ended.stderr.splitlines()) == 1


def test_the_trace_is_shown_where_it_is_wanted(day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("job.config.resolve", failing(OSError(5, "Input/output error")))
    monkeypatch.setitem(os.environ, "FUPAN_TRACEBACK", "1")
    ended = fupan("run", "a.log")
    assert ended.exit_code == 1
    assert "Traceback" in ended.stderr
    assert ended.stderr.splitlines()[-1] == "fupan: Input/output error"
