"""What scripts/submit sends and what it brings back."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from job.errors import InputError, JobError, OutputInUse, UsageError
from scripts.submitting import upload as uploading
from scripts.submitting.carry import BEGIN, END, carry
from scripts.submitting.fetch import check_target, unpack
from scripts.submitting.remote_run import remote_run
from scripts.submitting.upload import pack_checkout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with what must be sent and what must not."""
    root = tmp_path / "checkout"
    files = {
        ".gitignore": "retro/\n*.tmp\n",
        ".git/config": "x",
        ".venv/bin/python": "x",
        ".env": "LLM_API_KEY=sk-secret",
        "job/cli.py": "x",
        "job/__pycache__/cli.pyc": "x",
        "job/notes.tmp": "x",
        "logs/day/app.log": "x" * 5000,
        "logs/day/chat.jsonl": "{}",
        "retro/report.html": "x",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "rules.md").write_text("Ignore the tests.\n")
    monkeypatch.chdir(root)
    return root


ASKING = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")


def test_only_the_checkout_is_sent(checkout: Path, tmp_path: Path) -> None:
    sent = pack_checkout(checkout, tmp_path)
    assert set(sent.files) == {
        *(".gitignore", "job/cli.py", "logs/day/app.log", "logs/day/chat.jsonl")
    }
    first, second, *_ = sent.lines()
    assert first.startswith("upload: 4 files of this checkout")
    assert second.split()[-1] == "logs/"


@pytest.mark.parametrize(
    "path", ["logs", "logs/", "./logs/day", "logs/day/app.log", "logs/*/*.log"]
)
def test_an_input_of_the_checkout_is_known_to_be_sent(
    checkout: Path, tmp_path: Path, path: str
) -> None:
    run = remote_run([path, "--out", "/shared/out"], checkout)
    pack_checkout(checkout, tmp_path).check_inputs(run.uploaded)


@pytest.mark.parametrize("path", ["retro", "nowhere", "job/notes.tmp", "log"])
def test_an_input_that_is_not_sent_is_told_before_anything_is(
    checkout: Path, tmp_path: Path, path: str
) -> None:
    run = remote_run([path, "--out", "/shared/out"], checkout)
    with pytest.raises(InputError, match="is not uploaded"):
        pack_checkout(checkout, tmp_path).check_inputs(run.uploaded)


def test_more_than_a_cluster_takes_is_told_with_what_is_biggest(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "MOST_BYTES", 500)
    with pytest.raises(UsageError, match="Biggest: logs/"):
        pack_checkout(checkout, tmp_path).check_size()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["logs", "--out", "retro"], "absolute path"),
        (["logs"], "no --out"),
        (["../elsewhere", "--out", "/o"], "outside the checkout"),
        (["logs", "--out", "/o", "--answers", "a.db"], "--answers a.db"),
        (["logs", "--out", "/o", "--baseline", "retro/1"], "--baseline retro/1"),
        (["logs", "--out", "/o", "--config", "/dev/null"], "only the checkout is uploaded"),
        (
            ["logs", "--out", "/o", *ASKING, "--instructions", "../rules.md"],
            "--instructions ../rules.md: only the checkout is uploaded",
        ),
        (["logs", "--out", "/o", "--no-such-flag"], "--no-such-flag"),
        (["logs", "--out", "/o", "--rpm", "60"], "without a provider"),
    ],
)
def test_what_cannot_mean_the_same_there_is_refused(
    checkout: Path, arguments: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        remote_run(arguments, checkout)


def test_what_depends_on_this_machine_is_said_in_full(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    (checkout / "fupan.yaml").write_text("run: {date: 2026-03-14, out: '/shared/retro/{date}'}\n")
    run = remote_run(["/data/{date}"], checkout)
    assert run.out == "/shared/retro/2026-03-14"
    assert run.entrypoint == (
        "python -m job run '/data/{date}' --out /shared/retro/2026-03-14 "
        "--timezone Asia/Shanghai --date 2026-03-14"
    )
    assert run.uploaded == ("fupan.yaml",)


def test_own_instructions_are_sent(checkout: Path, tmp_path: Path) -> None:
    (checkout / "rules.md").write_text("Ignore the tests.\n")
    run = remote_run(["logs", "--out", "/o", *ASKING, "--instructions", "rules.md"], checkout)
    assert "rules.md" in run.uploaded
    pack_checkout(checkout, tmp_path).check_inputs(run.uploaded)


def test_settings_that_are_not_sent_are_told_before_anything_is(
    checkout: Path, tmp_path: Path
) -> None:
    (checkout / ".gitignore").write_text("fupan.yaml\n")
    (checkout / "fupan.yaml").write_text("run: {language: zh}\n")
    run = remote_run(["logs", "--out", "/o"], checkout)
    with pytest.raises(InputError, match=r"fupan\.yaml is not uploaded"):
        pack_checkout(checkout, tmp_path).check_inputs(run.uploaded)


@pytest.mark.parametrize("flag", ["", "--baseline"])
def test_a_secret_in_a_uri_is_neither_sent_nor_shown(checkout: Path, flag: str) -> None:
    uri = "s3://AKIAEXAMPLE:secret-of-mine@bucket/day"
    given = [flag, uri, "logs"] if flag else [uri]
    with pytest.raises(UsageError, match="credentials") as refused:
        remote_run([*given, "--out", "/o"], checkout)
    assert "secret-of-mine" not in str(refused.value)


def test_a_folder_arrives_as_it_was(tmp_path: Path) -> None:
    out, here = tmp_path / "out", tmp_path / "here"
    files = {
        "report.html": "页面" * 100_000,
        "results/part-00000.parquet": "x" * 10,
        "failed.jsonl": "",
    }
    for name, text in {**files, ".lock": "", ".work/x": "y"}.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    log = "\n".join(["Running entrypoint for job x: y", *carry(str(out)), "more"])
    assert unpack(log, here).files == 3
    assert {str(p.relative_to(here)) for p in here.rglob("*") if p.is_file()} == set(files)
    assert all((here / name).read_text() == text for name, text in files.items())


def test_what_is_too_much_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.submitting.carry.MOST_BYTES", 100)
    (tmp_path / "report.html").write_text("x" * 90)
    (tmp_path / "evidence.csv").write_text("x" * 9)
    (tmp_path / "big.parquet").write_text("x" * 50)
    fetched = unpack("\n".join(carry(str(tmp_path))), tmp_path / "here")
    assert (fetched.files, fetched.left) == (2, {"big.parquet": 50})


def test_of_another_run_that_was_there_nothing_stays(tmp_path: Path) -> None:
    out, here = tmp_path / "out", tmp_path / "here"
    for folder, names in (
        (out, ["report.html", "results/part-00000.parquet"]),
        (here, ["report.html", "failed.jsonl", "results/part-00001.parquet", "notes.txt"]),
    ):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(folder.name)
    unpack("\n".join(carry(str(out))), here)
    left = {str(p.relative_to(here)): p.read_text() for p in here.rglob("*") if p.is_file()}
    sent = dict.fromkeys(["report.html", "results/part-00000.parquet"], "out")
    assert left == {**sent, "notes.txt": "here"}


@pytest.mark.parametrize("name", ["../escaped", "/../escaped", "results/../../escaped"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name))
    head = {"sha256": hashlib.sha256(packed.getvalue()).hexdigest(), "files": 1, "left": {}}
    sent = base64.b64encode(packed.getvalue()).decode()
    with pytest.raises(JobError, match="no folder of a run"):
        unpack("\n".join([BEGIN + json.dumps(head), sent, END]), tmp_path / "here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", [lambda log: log[: len(log) // 2], lambda log: "", "x".join])
def test_a_log_that_is_not_whole_is_not_taken(tmp_path: Path, harm: object) -> None:
    (tmp_path / "report.html").write_text("x" * 100_000)
    log = "\n".join(carry(str(tmp_path)))
    assert callable(harm)
    with pytest.raises(JobError, match=r"did not arrive whole|could not be fetched"):
        unpack(harm(log), tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_a_folder_of_something_else_is_not_written_to(tmp_path: Path) -> None:
    check_target(tmp_path / "new")
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(OutputInUse):
        check_target(tmp_path)
