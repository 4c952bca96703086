"""A run whose store of answers is damaged ends well, and says what happened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from scripts.days.seed_day import write_seed_day
from serve.ask.answers_repair import copies_beside
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json

pytestmark = pytest.mark.ray

RECORDS = 60


def test_a_run_outlives_its_store(tmp_path: Path) -> None:
    write_seed_day(tmp_path, seed=6, records=RECORDS, poison=0)
    answers = tmp_path / "a" / "answers.db"
    settings = Settings(truth=load_truth(tmp_path / "provider.json"), time_scale=50.0)
    with SimulatedProvider(settings) as server:

        def run(out: str) -> dict[str, int]:
            ended = fupan(
                *("run", tmp_path / "input", "--out", tmp_path / out, "--answers", answers),
                *("--base-url", server.base_url, "--model", "simulated", "--quiet"),
            )
            assert ended.code == 0, ended.err
            warnings = read_json(tmp_path / out / "report.json")["run"]["warnings"]
            assert all(f"fupan: warning: {warning}" in ended.err for warning in warnings)
            copies = [copy.name for copy in copies_beside(answers)]
            assert [any(name in warning for warning in warnings) for name in copies] == [
                out == "damaged"
            ] * len(copies)
            ledger: dict[str, int] = read_json(tmp_path / out / "ledger.json")
            return ledger

        assert run("first")["answered"] == RECORDS
        with closing(sqlite3.connect(answers)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # A page of answers: not the opening but a recall meets it.
        page = answers.read_bytes().rindex(b'"outcome"') // 4096
        with answers.open("r+b") as file:
            file.seek(4096 * page)
            file.write(b"\xff" * 4096)
        ledger = run("damaged")
        assert ledger["recalled"] + ledger["answered"] == RECORDS
        assert ledger["recalled"] > RECORDS // 2
    (copy,) = copies_beside(answers)
    assert b"\xff" * 4096 in copy.read_bytes()
