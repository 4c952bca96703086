"""Runs under a cap, on a real Ray cluster: stopped by it, and gone on with."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from serve.simulated import Settings, SimulatedProvider
from tests.command import fupan, read_json
from tests.job.test_compress import ENGLISH
from tests.job.test_run_again import write_logs

pytestmark = pytest.mark.ray

PRICES = {"currency": "CNY", "input": "2.5", "output": "10"}
CAP, MORE = Decimal("0.10"), Decimal("2.00")


def test_a_run_stops_at_its_cap_and_goes_on_under_a_higher_one(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", 2, 300)
    out, config = tmp_path / "retro", tmp_path / "fupan.yaml"
    billed = {"simulated": {name: PRICES[name] for name in ("input", "output")}}
    priced = Settings.model_validate(
        {"prices": billed, "bill_lost": True, "fault_schedule": {2: "server_error"}}
    )
    with SimulatedProvider(priced) as provider:
        section = {
            "base_url": provider.base_url,
            "models": ["simulated"],
            "prices": PRICES,
        }
        settings = {
            "providers": {"priced": section},
            "run": {"language": "en"},
            "inputs": [
                {"path": str(tmp_path / "logs" / "0.log"), "label": "shop"},
                {"path": str(tmp_path / "logs" / "1.log")},
            ],
        }
        config.write_text(yaml.safe_dump(settings))
        words = ("--config", config, "--out", out, "--answers", tmp_path / "answers.db")

        stopped = fupan("run", *words, "--max-spend", str(CAP))
        assert stopped.code == 4, stopped.err
        assert "STOPPED EARLY: the cap of 0.1 CNY is reached" in stopped.out
        bill = Decimal(provider.stats()["bill"])
        assert 0 < bill <= CAP
        cost = read_json(out / "report.json")["cost"]
        assert bill <= Decimal(str(cost["cost"])) <= CAP
        assert (cost["capped"], cost["currency"], cost["usd"]) == (True, "CNY", None)
        assert "the same command with a higher --max-spend goes on" in stopped.err
        top = "\n".join((out / "report.md").read_text().splitlines()[:12])
        assert "may spend 0.10 CNY (--max-spend)" in top

        done = fupan("run", *words, "--max-spend", str(MORE))
        assert done.code == 0, done.err
        bill = Decimal(provider.stats()["bill"])
    report = read_json(out / "report.json")
    cost = report["cost"]
    assert bill <= Decimal(str(cost["cost"])) <= MORE
    assert cost["cost_before"] > 0
    assert set(cost["by_label"]) >= {"shop", "(none)"}
    assert report["ledger"]["answered"] + report["ledger"]["recalled"] == 600
    assert ", 0." in next(line for line in done.lines if line.startswith("spent: "))


@pytest.mark.thorough
def test_a_run_that_asks_anew_goes_on_with_what_it_has_paid_for(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", 1, 300)
    out, config, own = tmp_path / "retro", tmp_path / "fupan.yaml", tmp_path / "own.md"
    own.write_text(ENGLISH)
    with SimulatedProvider(Settings()) as provider:
        section = {"base_url": provider.base_url, "models": ["simulated"], "prices": PRICES}
        config.write_text(yaml.safe_dump({"providers": {"priced": section}}))
        words = ("--config", config, "--out", out, "--answers", tmp_path / "answers.db", "--fresh")
        told = ("--instructions", own, "--compress-instructions", tmp_path / "logs")

        stopped = fupan("run", *words, *told, "--max-spend", str(CAP))
        assert stopped.code == 4, stopped.err
        paid = read_json(out / "report.json")
        done = fupan("run", *words, *told, "--max-spend", str(MORE))
        assert done.code == 0, done.err
    report = read_json(out / "report.json")
    assert report["ledger"]["recalled"] >= paid["ledger"]["answered"] > 0
    assert report["cost"]["cost_before"] == paid["cost"]["cost"]
    assert report["run"]["own_instructions"]["compression"]["recalled"] is True
