"""A run that asks the small real model: its ledger balances, whatever the model says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import fupan, read_json, read_results
from tests.serve.gateway_process import gateway_process

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


@pytest.mark.timeout(600)
def test_a_run_asks_the_model_that_the_cluster_serves(tmp_path: Path) -> None:
    """The run's own file names no model that it could hold itself."""
    (tmp_path / "app.log").write_text(LOG)
    served = {"models": {"small": {"generator": "smollm2-135m"}}}
    (tmp_path / "run.yaml").write_text("models: {small: {generator: ./nowhere}}")
    out = tmp_path / "out"
    command = (
        *("run", tmp_path / "app.log", "--out", out, "--answers", tmp_path / "answers.db"),
        *("--provider", "local/small", "--config", tmp_path / "run.yaml"),
    )
    alone = fupan(*command, HF_HUB_OFFLINE="1")
    assert alone.code == 2
    assert "there is no folder ./nowhere: correct the path" in alone.err
    with gateway_process(served, tmp_path, HF_HUB_OFFLINE="1") as gateway:
        ended = fupan(*command, RAY_ADDRESS=gateway.cluster, RAY_AUTH_MODE="token")
        assert ended.code == 0, ended.err
        ledger = read_json(out / "ledger.json")
        assert (ledger["records"], ledger["answered"], ledger["failed"]) == (3, 3, 0)
        assert {row["model"] for row in read_results(out)} == {"small"}
        assert gateway.end() == 0
