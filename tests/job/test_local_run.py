"""A run that asks the small real model: its ledger balances, whatever the model says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import fupan, read_json, read_results

pytestmark = [pytest.mark.ray, pytest.mark.slow]

LOG = """\
2026-03-14 10:00:00 INFO order 1001 created
2026-03-14 10:00:05 ERROR payment gateway timeout for order 1001
2026-03-14 10:02:00 ERROR disk full on export-7
"""


def test_a_run_is_answered_by_a_model_of_its_own_machine(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(LOG)
    out, answers = tmp_path / "out", tmp_path / "answers.db"
    ended = fupan(
        *("run", tmp_path / "app.log", "--out", out, "--answers", answers, "--provider", "local"),
        HF_HUB_OFFLINE="1",
    )
    assert ended.code == 0, ended.err
    ledger = read_json(out / "ledger.json")
    assert (ledger["records"], ledger["answered"], ledger["failed"]) == (3, 3, 0)
    assert ledger["calls"]["tokens_out"] > 0
    assert {row["model"] for row in read_results(out)} == {"smollm2-135m"}
