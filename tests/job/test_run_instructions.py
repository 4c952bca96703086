"""A run with a team's own rules, made shorter by the model, on a real Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.command import Ended, fupan, read_json
from tests.job.test_compress import CHINESE

pytestmark = pytest.mark.ray


def run(folder: Path, server: SimulatedProvider, out: str) -> tuple[Ended, Any]:
    """A run of one log and one file of rules, and what its report says of the method."""
    (folder / "app.log").write_text(
        "".join(f"2026-03-14 10:00:00 INFO page {word} was served\n" for word in ("a", "be", "cat"))
    )
    (folder / "rules.md").write_text(CHINESE)
    ended = fupan(
        *("run", folder / "app.log", "--out", folder / out, "--answers", folder / "answers.db"),
        *("--base-url", server.base_url, "--model", "simulated", "--timezone", "UTC"),
        *("--instructions", folder / "rules.md", "--compress-instructions"),
    )
    assert ended.code == 0, ended.err
    return ended, read_json(folder / out / "report.json")["method"]


def test_rules_are_made_shorter_once_and_told_so_by_every_run(tmp_path: Path) -> None:
    settings = Settings.model_validate({"time_scale": 50.0})
    with SimulatedProvider(settings) as server:
        first, method = run(tmp_path, server, "one")
        asked = server.stats()["requests"]
        again, method_again = run(tmp_path, server, "two")
        assert server.stats()["requests"] == asked
    compression = method["own_instructions"]["compression"]
    assert compression["used"]
    assert compression["requests"] == 2
    assert compression["tokens_saved"] == compression["calls"] * (
        compression["tokens_before"] - compression["tokens_after"]
    )
    assert compression["tokens_spent"] > 0
    assert f"{compression['tokens_spent']:,} taken by shortening" in first.out
    calls = read_json(tmp_path / "one" / "ledger.json")["calls"]
    assert calls["requests"] == asked == 2 + compression["calls"]
    recalled = method_again["own_instructions"]["compression"]
    assert (recalled["recalled"], recalled["requests"], recalled["calls"]) == (True, 0, 0)
    assert method_again["instructions"] == method["instructions"]
    assert read_json(tmp_path / "two" / "ledger.json")["recalled"] == 3
    assert "By an earlier run" in again.out
    assert "Made shorter" in (tmp_path / "one" / "report.html").read_text()


@pytest.mark.thorough
def test_a_model_that_forgets_rules_is_not_believed_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = Settings.model_validate({"time_scale": 50.0, "forgets_rules": 2})
    with SimulatedProvider(settings) as server:
        ended, method = run(tmp_path, server, "one")
    compression = method["own_instructions"]["compression"]
    assert (compression["used"], compression["reason"]) == (False, "lost")
    assert compression["tokens_saved"] == 0
    assert "warning: --compress-instructions: No, told as written" in ended.err
    assert read_json(tmp_path / "one" / "ledger.json")["answered"] == 3


@pytest.mark.thorough
def test_a_provider_that_refuses_the_rules_is_asked_about_the_records(tmp_path: Path) -> None:
    settings = Settings.model_validate({"time_scale": 50.0, "poison": ["骑手"]})
    with SimulatedProvider(settings) as server:
        ended, method = run(tmp_path, server, "one")
    compression = method["own_instructions"]["compression"]
    assert (compression["used"], compression["reason"]) == (False, "provider")
    assert "the model could not be asked" in ended.err
    assert read_json(tmp_path / "one" / "ledger.json")["answered"] == 3
