"""Runs that cannot get round to everything, on a real Ray cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from job.ration.deadline import LEARNED, REACHED, Closing
from job.ration.importance import Importance, importance
from job.records import record_from_row
from scripts.days.seed_day import write_seed_day
from serve.ask.answers import Answers
from serve.simulated import Settings, SimulatedProvider
from tests.command import fupan, read_json, read_results
from tests.job.test_run import arguments, check_account, provider

pytestmark = pytest.mark.ray


def in_seconds(seconds: float) -> str:
    """What a clock shows then."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%H:%M:%S")


def classes(out: Path, *vias: str) -> list[Importance]:
    """Of the records that ended so."""
    rows = [row for row in read_results(out) if row["via"] in vias]
    return [importance(record_from_row(row)) for row in rows]


def test_what_there_is_no_time_for_is_what_matters_least_and_the_next_run_goes_on(
    tmp_path: Path,
) -> None:
    day, out, answers = tmp_path / "day", tmp_path / "retro", tmp_path / "answers.db"
    write_seed_day(day, seed=3, records=240)
    # Rationed by its deadline, hours away; the quota ends it after the first packs.
    with provider(day, quota_after=4) as server:
        command = [*arguments(day, server, out, answers), "--max-concurrency", "1"]
        ended = fupan(*command, "--deadline", in_seconds(7200))
        assert ended.code == 4, ended.err
    check_account(out)
    asked, left = classes(out, "answered"), classes(out, "unasked")
    assert asked
    assert left
    assert max(asked) <= min(left)
    # Whatever was paid for is recalled, and there is no time for any call.
    with provider(day) as server:
        command = arguments(day, server, out, answers)
        late = fupan(*command, "--overwrite", "--deadline", in_seconds(18))
        assert late.code == 4, late.err
        assert server.stats()["requests"] == 0
        report = read_json(out / "report.json")
        assert report["run"]["stopped"]["reason"] == REACHED
        assert report["ledger"]["recalled"] == len(asked)
        assert report["ledger"]["unasked"] == len(left)
        whole = fupan(*command)
        assert whole.code == 0, whole.err
    check_account(out)
    assert read_json(out / "ledger.json")["answered"] == len(left)
    with Answers(answers) as store:
        assert Closing.decode(store.learned(LEARNED)).slowness


@pytest.mark.thorough
def test_a_deadline_needs_no_records(tmp_path: Path) -> None:
    out, logs = tmp_path / "retro", tmp_path / "app.log"
    logs.write_text("2026-03-14 10:00:00 INFO all is well\n")
    with SimulatedProvider(Settings(time_scale=1000)) as server:
        ended = fupan(
            *("run", logs, "--out", out, "--answers", tmp_path / "answers.db"),
            *("--base-url", server.base_url, "--model", "simulated", "--timezone", "UTC"),
            *("--since", "2030-01-01", "--deadline", in_seconds(7200)),
        )
    assert ended.code == 0, ended.err
    check_account(out)
