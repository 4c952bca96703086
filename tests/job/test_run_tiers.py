"""Several models in one run, on a real Ray cluster, as a user starts it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from scripts.days.causes import load_causes
from scripts.days.score import evaluate, read_predictions
from scripts.days.seed_day import write_seed_day
from scripts.days.truth import read_truth
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json, read_results
from tests.job.test_run import check_account

pytestmark = pytest.mark.ray

MODELS = ("small", "middle", "large")
PRICES = {
    "small": {"input": "0.5", "output": "2"},
    "middle": {"input": "2", "output": "8"},
    "large": {"input": "8", "output": "32"},
}
RECORDS = 120


@pytest.mark.thorough
def test_what_a_weak_model_answers_badly_is_answered_by_the_next_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    write_seed_day(tmp_path, seed=5, records=RECORDS, poison=0)
    beyond = [phrase for cause in load_causes()[::2] for phrase in cause.phrases()]
    settings = Settings.model_validate(
        {
            "truth": load_truth(tmp_path / "provider.json"),
            "time_scale": 50.0,
            "models": MODELS,
            "prices": PRICES,
            "weak_models": {"small": {"phrases": beyond}, "middle": {"phrases": beyond[::3]}},
        }
    )
    out, config = tmp_path / "retro", tmp_path / "fupan.yaml"
    command = (
        *("run", tmp_path / "input", "--out", out, "--config", config, "--model", "auto"),
        *("--answers", tmp_path / "answers.db", "--timezone", "UTC"),
    )
    with SimulatedProvider(settings) as server:
        tiers = dict(zip(("fast", "balanced", "powerful"), MODELS, strict=True))
        provider = {"base_url": server.base_url, "models": list(MODELS), "tiers": tiers}
        config.write_text(yaml.safe_dump({"providers": {"mine": provider | {"prices": PRICES}}}))
        ended = fupan(*command)
        asked = server.stats()
        again = fupan(*command, "--overwrite")
        assert server.stats()["requests"] == asked["requests"]
    assert (ended.code, again.code) == (0, 0), ended.err + again.err
    check_account(out)
    evaluation = evaluate(read_truth(tmp_path / "truth.json"), read_predictions(out))
    assert (evaluation.records, evaluation.missing, evaluation.wrong) == (RECORDS, 0, 0)
    rows = read_results(out)
    assert {row["via"] for row in rows} <= {"recalled", "folded"}
    by_model = Counter(name for row in rows for name in row["model"].split(", "))
    assert set(by_model) == set(MODELS)
    assert all(
        issue["cause"] and issue["suggestion"]
        for row in rows
        if row["outcome"] == "problem"
        for issue in row["issues"]
    )
    assert "shared: " in ended.out
    assert "less than by large alone" in ended.out
    # What the second run left says that it asked nobody.
    routing = read_json(out / "timing.json")["routing"]
    assert sum(tier["calls"] for tier in routing["tiers"]) == 0
