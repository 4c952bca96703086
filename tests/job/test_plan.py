"""A plan before and after a run, as a user types it, on a real Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from scripts.days.seed_day import write_seed_day
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json

pytestmark = pytest.mark.ray


@pytest.mark.thorough
def test_a_plan_says_what_the_run_takes_and_knows_it_better_after_it(tmp_path: Path) -> None:
    write_seed_day(tmp_path / "day", seed=3, records=240)
    truth = load_truth(tmp_path / "day" / "provider.json")
    settings = Settings.model_validate({"truth": truth, "time_scale": 50.0})
    with SimulatedProvider(settings) as server:
        words = (
            *(tmp_path / "day" / "input", "--answers", tmp_path / "answers.db"),
            *("--base-url", server.base_url, "--model", "simulated", "--timezone", "UTC"),
        )
        guess = plan(*words)
        assert server.stats()["requests"] == 0
        ended = fupan("run", *words, "--out", tmp_path / "out")
        assert ended.code == 0, ended.err
        seen = plan(*words, "--fresh")
        recalled = plan(*words)
        tried = plan(*words, "--fresh", "--canary", "10", "--out", tmp_path / "new")
    calls = read_json(tmp_path / "out" / "ledger.json")["calls"]
    took = calls["tokens_in"] + calls["tokens_out"]
    assert (guess["earlier_runs"], seen["earlier_runs"]) == (0, 1)
    assert tokens(guess) == pytest.approx(took, rel=0.1)
    assert tokens(seen) == pytest.approx(took, rel=0.05)
    for told in (guess, seen):
        for name in ("tokens_in", "tokens_out"):
            low, high = told["ranges"][name]
            assert low <= calls[name] <= high
    assert seen["calls"] == pytest.approx(calls["requests"], abs=2)
    assert tried["canary"] >= 50 + 50
    assert tried["calls"] == pytest.approx(seen["calls"] + tried["canary"], abs=10)
    assert tokens(tried) > tokens(seen) + 300 * tried["canary"]
    assert (recalled["to_ask"], recalled["calls"], recalled["recalled"]) == (0, 0, 240)
    estimates = read_json(tmp_path / "out" / "timing.json")["estimates"]
    assert sum(kind["answers"] for kind in estimates["answer_tokens"].values()) >= 240


def plan(*words: Any) -> dict[str, Any]:
    ended = fupan("plan", *words, "--json")
    assert ended.code == 0, ended.err
    return dict(orjson.loads(ended.out))


def tokens(told: dict[str, Any]) -> int:
    return int(told["tokens_in"] + told["tokens_out"])
