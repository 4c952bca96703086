"""Which files an input names, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from job.errors import InputError
from job.read import read_slice
from job.read.inputs import find_files
from job.records import Raw, Rejected
from job.storage.place import Place
from tests.job.reading import plan, planned, rows_of


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `logs` with files at two levels, one of them hidden, in the current folder."""
    for name in ("logs/b.log", "logs/a.log", "logs/app/c.log", "logs/.d.log", "logs/.old/e.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"2024-03-05 14:30:00 INFO {name}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*inputs: str | Path) -> list[str]:
    return [file.source for file in plan(*inputs).files]


def test_a_folder_gives_all_below_it_sorted_and_counts_what_is_hidden(day: Path) -> None:
    assert names("logs") == ["logs/a.log", "logs/app/c.log", "logs/b.log"]
    assert plan("logs").ignored == 2


def test_names_are_the_same_from_wherever_the_folder_is_given(day: Path) -> None:
    assert names(day / "logs") == names("logs") == names("./logs/") == names(f"file://{day}/logs")


def test_files_and_globs_are_named_as_given(day: Path) -> None:
    assert names("logs/b.log") == ["logs/b.log"]
    assert names("logs/*.log") == ["logs/a.log", "logs/b.log"]
    assert names("logs/**/*.log") == ["logs/a.log", "logs/app/c.log", "logs/b.log"]
    assert names(day / "logs" / "a.log") == [str(day / "logs" / "a.log")]


def test_a_hidden_file_is_read_when_it_is_asked_for(day: Path) -> None:
    assert names("logs/.d.log") == ["logs/.d.log"]
    assert names("logs/.old") == [".old/e.log"]
    assert names("logs/.*.log") == ["logs/.d.log"]


def test_a_file_with_glob_characters_in_its_name(day: Path) -> None:
    (day / "app[1].log").write_text("started\n")
    assert names("app[1].log") == ["app[1].log"]


def test_a_file_that_two_inputs_hold_is_read_once(day: Path) -> None:
    files = plan("logs/b.log", "logs").files
    assert [(file.source, file.input) for file in files] == [
        ("logs/b.log", 0),
        ("logs/a.log", 1),
        ("logs/app/c.log", 1),
    ]


def test_two_folders_of_one_name_keep_their_files_apart(day: Path) -> None:
    for host in ("web1", "web2"):
        (day / host / "logs").mkdir(parents=True)
        (day / host / "logs" / "a.log").write_text(f"hello from {host}\n")
    assert names("web1/logs", "web2/logs") == ["web1/logs/a.log", "web2/logs/a.log"]


def test_a_folder_that_links_to_itself_is_walked_once(day: Path) -> None:
    (day / "logs" / "app" / "up").symlink_to(day / "logs")
    (day / "logs" / "gone.log").symlink_to(day / "nowhere")
    assert names("logs") == ["logs/a.log", "logs/app/c.log", "logs/b.log"]
    assert plan("logs").ignored == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nowhere.log", "does not exist"),
        ("logs/*.csv", "no file matches"),
        ("empty", "holds no files"),
        ("", "it is empty"),
        ("nosuch://bucket/x", "cannot read the input"),
        ("file:///nowhere/at/all", "does not exist"),
    ],
)
def test_an_input_without_a_file_is_an_error_that_names_it(
    day: Path, given: str, words: str
) -> None:
    (day / "empty").mkdir()
    with pytest.raises(InputError, match=words) as caught:
        plan("logs", given)
    assert repr(given) in str(caught.value)


def test_credentials_in_a_uri_are_not_repeated(tmp_path: Path) -> None:
    for given in (
        "nosuch://id:secret@bucket/x",
        "nosuch://bucket/x?key=secret",
        "s3://a:secret@b c",
        "nosuch://id:sec/secret@bucket/x",
        "nosuch://id:sec@secret@bucket/x",
        "nosuch://bucket/x#secret",
    ):
        with pytest.raises(InputError) as caught:
            plan(given)
        assert "secret" not in str(caught.value)


@pytest.fixture
def run_before(day: Path) -> Path:
    """The folder of a finished run inside `logs`, under a name of its own."""
    out = day / "logs" / "retro"
    (out / "results").mkdir(parents=True)
    for name in ("run.json", "ledger.json", "rejected.jsonl", "results/x.log"):
        (out / name).write_text("{}\n")
    return out


LOGS = ["logs/a.log", "logs/app/c.log", "logs/b.log"]


def test_what_a_run_has_written_is_not_read_but_counted(run_before: Path) -> None:
    assert names("logs") == LOGS
    assert plan("logs").ignored == 2 + 4
    assert names("logs/*") == ["logs/a.log", "app/c.log", "logs/b.log"]
    assert names("logs/**/*.log") == LOGS
    with pytest.raises(InputError, match="3 entries ignored"):
        plan("logs/**/*.json*")


def test_what_a_run_has_written_is_read_where_it_is_asked_for(run_before: Path) -> None:
    assert names("logs/retro/rejected.jsonl") == ["logs/retro/rejected.jsonl"]
    assert len(names("logs/retro")) == 4
    assert len(names("logs/retro/*.json")) == 2
    assert len(names("logs", "logs/retro")) == len(LOGS) + 4


def test_a_folder_is_no_runs_for_its_name_or_one_file(day: Path) -> None:
    for name in ("run.json", ".lock"):
        (day / "logs" / "app" / name).write_text("{}\n")
    assert names("logs/app") == ["app/c.log", "app/run.json"]
    assert "logs/app/run.json" in names("logs")


def test_what_the_run_itself_writes_is_not_read(day: Path) -> None:
    out, store = day / "logs" / "out", day / "logs" / "answers.db"
    out.mkdir()
    for path in (out / "other.log", store):
        path.write_text("started\n")
    found, ignored = find_files(["logs"], [Place.of("logs/out"), Place.of(store)])
    assert [file.name for file in found] == LOGS
    assert ignored == 2 + 2
    with pytest.raises(InputError, match="'logs' is also --out"):
        find_files(["logs"], [Place.of(day / "logs")])


def test_a_name_that_is_no_utf8_is_read_under_one_that_can_be_printed(day: Path) -> None:
    odd = os.path.join(os.fsencode(day), b"logs", b"caf\xe9.log")
    with open(odd, "w") as file:
        file.write("2024-03-05 14:30:00 INFO started\n")
    for given in ("logs", "logs/*.log", "logs/**/*.log", os.fsdecode(odd)):
        file_plan = next(file for file in plan(given).files if "caf" in file.source)
        assert file_plan.source.endswith("caf\\xe9.log")
        assert [type(row) for row in rows_of(file_plan)] == [Raw]
    (day / "logs" / "caf\\xe9.log").write_text("2024-03-05 14:30:00 INFO another\n")
    assert len(set(names("logs"))) == len(names("logs")) == 5


def test_a_file_that_goes_away_before_it_is_read_is_rejected(tmp_path: Path) -> None:
    file = planned(tmp_path / "a.jsonl", b'{"a": 1}\n')
    (tmp_path / "a.jsonl").unlink()
    (row,) = rows_of(file)
    assert isinstance(row, Rejected)
    assert row.reason == "unreadable"
    assert "a.jsonl" in row.detail


def test_a_file_that_cannot_be_opened_is_rejected_beside_its_neighbours(day: Path) -> None:
    # A folder in the place of a file fails to open for every user, root included.
    before = plan("logs")
    (day / "logs" / "b.log").unlink()
    (day / "logs" / "b.log").mkdir()
    found = [row for part in before.slices for row in read_slice(part)]
    assert [type(row) for row in found] == [Raw, Raw, Rejected]


def test_a_file_that_grows_is_read_to_the_end_of_the_line_it_had(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = planned(path, b'{"a": 1}\n{"a"')
    with path.open("ab") as more:
        more.write(b': 2}\n{"a": 3}\n')
    assert [row.value for row in rows_of(file) if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.log"])
def test_a_file_that_shrinks_before_it_is_read_says_what_is_gone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    file = planned(path, b'{"a": 1}\n{"a": 2}\n')
    path.write_bytes(b'{"a": 1}\n')
    *kept, lost = rows_of(file)
    assert [row.value for row in kept if isinstance(row, Raw)] == [{"a": 1}]
    assert isinstance(lost, Rejected)
    assert (lost.reason, lost.position) == ("truncated", 9)
    assert "ends at byte 9" in lost.detail


def test_the_fingerprint_tells_whether_the_inputs_are_the_same(day: Path) -> None:
    before = plan("logs").fingerprint
    assert plan("logs").fingerprint == before
    (day / "logs" / "a.log").write_text("2024-03-05 14:30:00 INFO logs/A.log\n")
    assert plan("logs").fingerprint != before
