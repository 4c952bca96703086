"""Runs beside one another and one after the other, on a real Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import islice, product
from pathlib import Path

import pytest

from tests.command import fupan, read_json, read_results

pytestmark = pytest.mark.ray


def write_logs(folder: Path, files: int, records: int) -> None:
    """Records that differ in a word, so that none is folded, and are normal, so that they are soon
    grouped."""
    folder.mkdir()
    words = ("".join(letters) for letters in product("bcdfgkmn", repeat=6))
    for number in range(files):
        lines = [
            f"2026-03-14 10:00:00 INFO page {word} was served\n" for word in islice(words, records)
        ]
        (folder / f"{number}.log").write_text("".join(lines))


def test_a_run_never_reads_what_runs_have_written(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_logs(logs, 1, 3)
    words = ("--out", logs / "retro", "--answers", logs / "answers.db", "--timezone", "UTC")
    # A plan is worked out on this machine, whatever cluster a run would use.
    assert fupan("plan", logs, *words, RAY_ADDRESS="127.0.0.1:1").code == 0
    assert [path.name for path in logs.iterdir()] == ["0.log"]
    for _ in range(2):
        ended = fupan("run", logs, *words)
        assert ended.code == 0, ended.err
        assert ended.lines[-2].startswith("3 read = 3 records")
    other = fupan("run", logs, *words[2:], "--out", logs / "second")
    assert other.lines[-2].startswith("3 read = 3 records")
    assert read_json(logs / "second" / "run.json")["ignored"] > len(os.listdir(logs / "retro")) - 2


def test_an_interrupt_leaves_what_the_built_in_analyst_has_not_seen_unasked(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", 40, 1000)
    out = tmp_path / "retro"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "job", "run", tmp_path / "logs", "--out", out),
            *("--answers", tmp_path / "answers.db", "--provider", "extractive"),
        ],
        env=os.environ,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    manifests = out / ".work" / "manifests"
    while not list(manifests.glob("*.json")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=480)
    assert process.returncode == 4, said
    assert "STOPPED EARLY: interrupted" in printed
    ledger = read_json(out / "ledger.json")
    assert ledger["read"] == 40_000
    assert ledger["unasked"] > 0
    assert ledger["answered"] + ledger["unasked"] == len(read_results(out)) == 40_000
