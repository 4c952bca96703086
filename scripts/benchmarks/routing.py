"""The seed day shared among three models, beside all of it by the most powerful one and by the
cheapest one.

The cheap model leaves the cause and the suggestion of every second planted problem empty, the
middle one those of every sixth; what they answer otherwise is right. Prices are four times as high
from tier to tier. Costs are the provider's own bill, naming included.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import run_command
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import ledger_errors, read_json
from scripts.benchmarks.workload import (
    CONTEXT,
    KEY_VARIABLE,
    Workload,
    prepare,
    provider_settings,
)
from scripts.days.causes import load_causes
from scripts.days.score import Evaluation, evaluate, read_predictions

TIERS = {"fast": "small", "balanced": "middle", "powerful": "large"}
PRICES = {
    "small": {"currency": "CNY", "input": 0.5, "cached": 0.1, "output": 2.0},
    "middle": {"currency": "CNY", "input": 2.0, "cached": 0.4, "output": 8.0},
    "large": {"currency": "CNY", "input": 8.0, "cached": 1.6, "output": 32.0},
}
"""Per million tokens."""
_WEAK_AT = {"small": 2, "middle": 6}
"""Every which planted problem is beyond the model."""
_HEADER = ("", "calls", "tokens", "bill", "escalated", "review", "wrong outcome", "F1")
_LEAST_SHARE_SAVED = 0.25
"""Of the bill of the most powerful model: what makes three models worth their trouble."""
_MOST_F1_LOST = 0.01
_TOLD = (0.8, 1.25)
"""The saving told over the one billed: packs of their own make each tier's calls a little smaller
than those of one model, which the telling does not know."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one way of asking took (`stats` of the provider) and gave."""

    stats: dict[str, Any]
    report: dict[str, Any]
    evaluation: Evaluation

    @property
    def bill(self) -> float:
        """Money, all models together."""
        return float(self.stats["bill"])

    @property
    def tiers(self) -> list[dict[str, Any]]:
        """The tiers as the report tells them; none where one model did all."""
        return list((self.report["timing"].get("routing") or {}).get("tiers", []))

    def row(self, name: str) -> tuple[str, ...]:
        """A row of the table."""
        tokens = self.stats["prompt_tokens"] + self.stats["completion_tokens"]
        return (
            name,
            *(f"{n:,}" for n in (self.stats["requests"], tokens)),
            f"{self.bill:.3f}",
            f"{sum(tier['escalated'] for tier in self.tiers):,}",
            f"{self.report['ledger']['review']:,}",
            f"{self.evaluation.wrong:,}",
            f"{self.evaluation.pairwise.f1:.4f}",
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


def weak_models() -> dict[str, dict[str, list[str]]]:
    """The phrases of the planted problems that are beyond each model."""
    causes = load_causes()
    return {
        model: {"phrases": [phrase for cause in causes[::every] for phrase in cause.phrases()]}
        for model, every in _WEAK_AT.items()
    }


def _command(workload: Workload, base_url: str, place: Path, model: str) -> list[str]:
    provider = {
        "base_url": base_url,
        "key_env": KEY_VARIABLE,
        "models": list(PRICES),
        "context": CONTEXT,
        "prices": PRICES,
        "tiers": TIERS,
    }
    place.mkdir(exist_ok=True)
    config = place / "fupan.yaml"
    config.write_text(yaml.safe_dump({"providers": {"tiered": provider}}))
    return [
        *(sys.executable, "-m", "job", "run", str(workload.input), "--out", str(place / "out")),
        *("--config", str(config), "--model", model, "--answers", str(place / "answers.db")),
    ]


def _ask(workload: Workload, provider: Provider, model: str, name: str) -> Outcome:
    place = workload.folder / name
    command = _command(workload, provider.base_url, place, model)
    finished = run_command(command, place.with_suffix(".log"))
    if finished.exit_code != 0:
        raise SystemExit(f"{finished.tail}\n{' '.join(command)} ended with {finished.exit_code}")
    out = place / "out"
    said = evaluate(workload.truth, read_predictions(out))
    report = read_json(out / "report.json")
    return Outcome(provider.stats(), report, said)


def _bars(shared: Outcome, powerful: Outcome, again: int) -> list[Bar]:
    saved = powerful.bill - shared.bill
    told = shared.report["timing"]["routing"]["saved"]
    f1_lost = powerful.evaluation.pairwise.f1 - shared.evaluation.pairwise.f1
    return [
        Bar("records without a result", shared.evaluation.missing, "==", 0),
        Bar("equations of the ledger that fail", ledger_errors(shared.report["ledger"]), "==", 0),
        Bar("records with a wrong outcome", shared.evaluation.wrong, "==", 0),
        Bar("records to review", shared.report["ledger"]["review"], "==", 0),
        Bar(
            "F1 of themes below that of the powerful model", round(f1_lost, 4), "<=", _MOST_F1_LOST
        ),
        Bar("calls of a rerun", again, "==", 0),
        Bar("share of the bill saved", round(saved / powerful.bill, 3), ">=", _LEAST_SHARE_SAVED),
        Bar("saving told over saving billed", round(told / saved, 3), ">=", _TOLD[0]),
        Bar("saving told over saving billed", round(told / saved, 3), "<=", _TOLD[1]),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    settings = provider_settings(
        workload,
        rpm=None,
        request_burst=None,
        models=tuple(PRICES),
        prices={
            model: {k: v for k, v in p.items() if k != "currency"} for model, p in PRICES.items()
        },
        weak_models=weak_models(),
    )
    with Provider(settings) as provider:
        shared = _ask(workload, provider, "auto", "shared")
        _ask(workload, provider, "auto", "shared")
        again = provider.stats()["requests"] - shared.stats["requests"]
    outcomes = {"three models": shared}
    for model, name in (("large", "always powerful"), ("small", "always fast")):
        with Provider(settings) as provider:
            outcomes[name] = _ask(workload, provider, model, model)
    print_table(_HEADER, [outcome.row(name) for name, outcome in outcomes.items()])
    records = sum(tier["routed"] for tier in shared.tiers)
    for tier in shared.tiers:
        print(
            f"  {tier['tier']:<9} {tier['routed'] / records:6.1%} of the records began here, "
            f"{tier['escalated']:,} were handed on, {tier['calls']:,} calls, {tier['cost']:.3f} CNY"
        )
    print()
    return verdict(_bars(shared, outcomes["always powerful"], again))
