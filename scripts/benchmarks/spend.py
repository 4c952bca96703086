"""Never more than agreed: the day under a cap of half of what `plan` says, with faults, at full
concurrency.

The provider bills what it wrote, delivered or not. It is stopped by the cap, continued under the
same cap, which makes no call, and under one of twice the plan, which ends with the report of an
undisturbed run. The bill is the provider's own, compared to the last decimal.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import orjson
import yaml

from scripts.benchmarks.checks import Bar, verdict
from scripts.benchmarks.command import Finished, run_command
from scripts.benchmarks.kill_day import different_rows, read_results, read_themes
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import bars_of_results, read_json
from scripts.benchmarks.workload import (
    CONTEXT,
    KEY_VARIABLE,
    MODEL,
    Workload,
    environment,
    prepare,
    provider_settings,
)
from serve.simulated import Settings

PRICES = {"input": "2.5", "cached": "0.25", "output": "10"}
"""US dollars per million tokens."""
FAULTS = {
    "rate_limit": 0.04,
    "server_error": 0.04,
    "reset": 0.04,
    "hang": 0.01,
    "cut": 0.04,
    "malformed": 0.02,
    "missing": 0.03,
    "doubled": 0.02,
    "invented": 0.02,
}
"""Share of the requests that each fault strikes."""
_CENT = Decimal("0.01")
_TOP_LINES = 12
"""Of report.md, in which a notice has to stand."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone: none."""
    del parser


def _settings(workload: Workload, seed: int, faults: bool) -> Settings:
    more: dict[str, Any] = {"rpm": None, "request_burst": None, "prices": {MODEL: PRICES}}
    if faults:
        more |= {"fault_shares": FAULTS, "fault_seed": seed, "bill_lost": True}
    return provider_settings(workload, **more)


def _command(
    workload: Workload, verb: str, base_url: str, place: Path, *more: str
) -> tuple[str, ...]:
    """`fupan run` or `plan` with the prices in fupan.yaml, as a user has them."""
    config = place / "fupan.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    provider = {
        "base_url": base_url,
        "key_env": KEY_VARIABLE,
        "models": [MODEL],
        "context": CONTEXT,
        "prices": PRICES,
    }
    config.write_text(yaml.safe_dump({"providers": {"priced": provider}}))
    return (
        *(sys.executable, "-m", "job", verb, str(workload.input), "--out", str(place / "out")),
        *("--config", str(config), "--answers", str(place / "answers" / "answers.db"), *more),
    )


def _planned(workload: Workload, base_url: str, place: Path) -> Decimal:
    """What `plan` says that the run will cost."""
    told = subprocess.run(
        [*_command(workload, "plan", base_url, place, "--json")],
        capture_output=True,
        check=True,
        env=environment(),
    )
    return Decimal(str(orjson.loads(told.stdout)["cost"]))


def _rows(out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Results and themes of a run. Themes go by their names here: their ids are those of the first
    report in the folder, which was a partial one."""
    themes = read_themes(out)
    names = {theme["id"]: f"{theme['title']} ({theme['issues']})" for theme in themes}
    results = read_results(out)
    for row in results:
        for issue in row["issues"]:
            issue["theme"] = names.get(issue["theme"], issue["theme"])
    return results, [theme | {"id": names[theme["id"]]} for theme in themes]


def _sums(cost: dict[str, Any]) -> int:
    """How many of the three breakdowns do not add up to the cost."""
    parts = (cost["by_kind"], cost["by_source"], cost["by_label"])
    total = Decimal(str(cost["cost"]))
    return sum(sum(Decimal(str(v)) for v in part.values()) != total for part in parts)


def _partial_on_top(out: Path, cap: Decimal) -> bool:
    """Whether the report says before all else that the cap stopped it, and how high it was."""
    top = "\n".join((out / "report.md").read_text().splitlines()[:_TOP_LINES])
    return all(words in top for words in ("--max-spend", f"{cap} USD"))


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    workload = prepare(args)
    one, other = (workload.folder / name for name in ("undisturbed", "capped"))
    log = workload.folder / "fupan.log"
    with Provider(_settings(workload, args.seed, faults=False)) as provider:
        planned = _planned(workload, provider.base_url, one)
        undisturbed = run_command(_command(workload, "run", provider.base_url, one), log)
        exact = Decimal(provider.stats()["bill"])
    if undisturbed.exit_code != 0:
        print(undisturbed.tail)
        return verdict([Bar("exit code, undisturbed", undisturbed.exit_code, "==", 0)])
    half = (planned / 2).quantize(_CENT, ROUND_HALF_UP)
    more = (planned * 2).quantize(_CENT, ROUND_HALF_UP)
    # The key of the aliases lies beside the answers; with another one the texts would differ.
    shutil.copytree(one / "answers", other / "answers", ignore=shutil.ignore_patterns("*.db*"))
    ends: list[Finished] = []
    bills: list[Decimal] = []
    requests: list[int] = []
    costs: list[dict[str, Any]] = []
    on_top = False
    with Provider(_settings(workload, args.seed, faults=True)) as provider:
        for cap in (half, half, more):
            command = _command(workload, "run", provider.base_url, other, "--max-spend", str(cap))
            ends.append(run_command(command, log))
            if ends[-1].exit_code not in (0, 4):
                print(ends[-1].tail)
                return verdict([Bar(f"exit code, cap {cap}", ends[-1].exit_code, "==", 4)])
            stats = provider.stats()
            bills.append(Decimal(stats["bill"]))
            requests.append(stats["requests"])
            costs.append(read_json(other / "out" / "report.json")["cost"])
            if len(ends) == 1:
                on_top = _partial_on_top(other / "out", half)
        faults = ", ".join(f"{kind} {n}" for kind, n in sorted(stats["by_fault"].items()))
    print(ends[-1].tail, end="\n\n")
    print(f"planned {planned} USD, billed undisturbed {exact}; caps {half}, {more}")
    print(f"bills {', '.join(map(str, bills))}; accounts {[cost['cost'] for cost in costs]}")
    print(f"unconfirmed {[cost['unconfirmed'] for cost in costs]}; faults: {faults}\n")
    (results, named), (results_now, named_now) = _rows(one / "out"), _rows(other / "out")
    rows, themes = different_rows(results, results_now), different_rows(named, named_now)
    print(f"differences by column: results {rows}, themes {themes}\n")
    headlines = [read_json(at / "out" / "report.json")["headline"] for at in (one, other)]
    return verdict(
        [
            Bar("exit code, undisturbed", undisturbed.exit_code, "==", 0),
            Bar("exit code at the cap", ends[0].exit_code, "==", 4),
            Bar("bill less the cap, USD", float(bills[0] - half), "<=", 0),
            Bar("share of the cap that was billed", float(bills[0] / half), ">=", 0.6),
            Bar("partial, with the cap, on top of the report", on_top, "==", True),
            Bar("exit code, same cap again", ends[1].exit_code, "==", 4),
            Bar("requests, same cap again", requests[1] - requests[0], "==", 0),
            Bar("exit code, higher cap", ends[2].exit_code, "==", 0),
            Bar("bill less the higher cap, USD", float(bills[2] - more), "<=", 0),
            *(
                Bar("bill less the account, USD", float(bill - Decimal(str(cost["cost"]))), "<=", 0)
                for bill, cost in zip(bills, costs, strict=True)
            ),
            Bar("breakdowns that miss the cost", sum(map(_sums, costs)), "==", 0),
            Bar("differing values in the results", sum(rows.values()), "==", 0),
            Bar("differing values in the themes", sum(themes.values()), "==", 0),
            Bar("headlines", len(set(headlines)), "==", 1),
            *bars_of_results(other / "out", workload.truth),
        ]
    )
