"""Days compared on a real Ray cluster, as a user compares them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from scripts.days.causes import load_causes
from scripts.days.day import Planned, make_day, plan_day
from scripts.days.files import write_day
from scripts.days.provider import write_provider_truth
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json
from tests.job.quoting import check_quotes

pytestmark = pytest.mark.ray

TRIPLED, KEPT, GONE, STEADY, NEW = (cause.name for cause in load_causes()[:5])
MONDAY = {TRIPLED: 20, KEPT: 14, GONE: 12, STEADY: 10}
WEDNESDAY = {TRIPLED: 60, KEPT: 14, STEADY: 10, NEW: 12}


def planned(counts: Mapping[str, int]) -> list[Planned]:
    """So many records of each cause, and some in which nothing went wrong."""
    full = plan_day(random.Random(1), 8_000, 60)
    plan = list(islice((p for p in full if p.topic is None), 30))
    for name, amount in counts.items():
        own = [p for p in full if p.topic is not None and p.topic.name == name]
        assert len(own) >= amount
        plan += own[:amount]
    return plan


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`runs(name, counts, day, model, *flags)`: the folder of a run of a made day."""
    root = tmp_path_factory.mktemp("days")
    write_provider_truth(root / "provider.json")
    truth = load_truth(root / "provider.json")
    models = ("simulated", "another")
    settings = Settings.model_validate({"truth": truth, "time_scale": 50.0, "models": models})
    with SimulatedProvider(settings) as server:

        def run(name: str, counts: Mapping[str, int], day: int, model: str, *flags: str) -> Path:
            entries = make_day(random.Random(2), planned(counts), 0.0, None)
            moved = [replace(entry, time=entry.time + timedelta(days=day)) for entry in entries]
            write_day(root / f"{name}-input", moved)
            ended = fupan(
                *("run", root / f"{name}-input", "--out", root / name),
                *("--answers", root / "answers.db", "--base-url", server.base_url),
                *("--model", model, "--timezone", "UTC", "--language", "en", *flags),
            )
            assert ended.code == 0, ended.err
            return root / name

        yield run


@pytest.fixture(scope="module")
def monday(runs: Any) -> Path:
    out: Path = runs("monday", MONDAY, 0, "simulated")
    return out


def themes_of(out: Path) -> dict[str, dict[str, Any]]:
    return {theme["id"]: theme for theme in read_json(out / "report.json")["themes"]}


def test_two_identical_days_show_no_change_and_have_the_same_themes(
    runs: Any, monday: Path
) -> None:
    out = runs("tuesday", MONDAY, 1, "simulated", "--baseline", str(monday))
    report = read_json(out / "report.json")
    assert themes_of(out).keys() == themes_of(monday).keys()
    assert {theme["status"] for theme in report["themes"]} == {"same"}
    assert report["comparison"]["gone"] == []
    for id, theme in themes_of(out).items():
        assert theme["records"] == themes_of(monday)[id]["records"]
        assert theme["days_seen"]["days"] == 2


def test_one_cause_tripled_one_gone_one_new_are_said_and_nothing_else(
    runs: Any, monday: Path
) -> None:
    out = runs("wednesday", WEDNESDAY, 2, "simulated", "--baseline", "auto")
    report = read_json(out / "report.json")
    assert report["comparison"]["mode"] == "auto"
    by_status: dict[str, list[int]] = {}
    for theme in report["themes"]:
        by_status.setdefault(theme["status"], []).append(theme["records"])
    assert by_status == {"worse": [60], "same": [14, 10], "new": [12]}
    (gone,) = report["comparison"]["gone"]
    assert gone["id"] in themes_of(monday)
    assert gone["before"] == 12
    assert report["headline"].startswith("3 problems need action: 1 new, 1 worse, 1 for ")
    kept = [theme["id"] for theme in report["themes"] if theme["status"] != "new"]
    assert set(kept) < themes_of(monday).keys()


def test_another_model_in_between_means_no_arrows(runs: Any, monday: Path) -> None:
    out = runs("thursday", MONDAY, 3, "another", "--baseline", str(monday))
    report = read_json(out / "report.json")
    assert {theme["status"] for theme in report["themes"]} == {None}
    assert {theme["change"] for theme in report["themes"]} == {None}
    assert report["comparison"]["reason"] == "model"


def test_every_quote_stands_in_its_record_and_every_count_in_the_report(monday: Path) -> None:
    check_quotes(monday)
    for theme in themes_of(monday).values():
        counts = {str(theme["issues"]), *map(str, theme["by_severity"].values())}
        if theme["named_by"] == "code":
            assert set(re.findall(r"\d+", theme["severity_reason"])) <= counts
