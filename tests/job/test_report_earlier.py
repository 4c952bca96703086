"""Reports from folders of runs of an earlier version."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from job.history.baseline import EarlierRuns
from job.report import write_report
from job.storage.place import Place
from tests.job.report_run import problem, theme, write_run
from tests.job.test_report import VALIDATOR


def an_earlier_run(out: Path, usd: float | None) -> Path:
    """A folder as runs left it before money was counted by kind, source and team."""
    write_run(out, [problem(1), problem(2)], [theme()])
    ledger = orjson.loads((out / "ledger.json").read_bytes())
    del ledger["spend"]
    for name in ("cost", "currency", "unconfirmed"):
        del ledger["calls"][name]
    ledger["calls"]["usd"] = usd
    (out / "ledger.json").write_bytes(orjson.dumps(ledger))
    return out


@pytest.mark.parametrize(("usd", "said"), [(1.2346, "1.23 USD"), (None, None)])
def test_the_report_of_an_earlier_run_is_made_again(
    usd: float | None, said: str | None, tmp_path: Path
) -> None:
    out = an_earlier_run(tmp_path / "out", usd)
    write_report(Place.of(out))
    report = orjson.loads((out / "report.json").read_bytes())
    VALIDATOR.validate(report)
    assert (report["cost"]["cost"], report["cost"]["by_kind"]) == (usd, {})
    page = (out / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert "45,678" in page
    assert ("Cost so far" in page) is (said is not None)
    assert said is None or said in page


def test_an_earlier_run_is_compared_with(tmp_path: Path) -> None:
    before = an_earlier_run(tmp_path / "before", 1.0)
    write_report(Place.of(before))
    report = orjson.loads((before / "report.json").read_bytes())
    usd = {name: report["cost"][name] for name in ("requests", "tokens_in", "tokens_out", "usd")}
    report["cost"] = usd
    del report["method"]["own_instructions"]
    (before / "report.json").write_bytes(orjson.dumps(report))
    now = Place.of(write_run(tmp_path / "now", [problem(3)], [theme()]))
    compared = write_report(now, earlier=EarlierRuns(str(before), now))["comparison"]
    assert compared["comparable"]
    assert compared["runs"][0]["records"] == 2
