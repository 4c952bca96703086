"""The parts of the benchmarks: what they count, extrapolate, compare and clean up."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks import bad_day, cli
from scripts.benchmarks.baselines import (
    Attempt,
    Script,
    extrapolate_concurrent,
    extrapolate_serial,
    part_of,
)
from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import Command, run_command
from scripts.benchmarks.fold import judge
from scripts.benchmarks.kill_day import Killing, asked_in_flight, different_rows
from scripts.benchmarks.memory import alive, process_tree, pss_bytes
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.quality import failed_keys, ledger_errors, theme_count_errors
from scripts.benchmarks.seed_day import calls_bars
from scripts.benchmarks.workload import Workload, fupan_command, provider_settings
from scripts.days.score import Evaluation, Pairwise, ThemeCount
from scripts.days.seed_day import make_seed_day, write_seed_day
from scripts.days.truth import read_truth
from serve.simulated import Settings


def test_a_benchmark_fails_if_one_bar_does(capsys: pytest.CaptureFixture[str]) -> None:
    good = [Bar("a", 1, "<=", 1), Bar("b", 0.95, ">=", 0.95), Bar("c", 3, "==", 3)]
    assert verdict(good) == 0
    assert verdict([*good, Bar("d", 121, "<=", 120)]) == 1
    assert "FAIL d: 121 <= 120" in capsys.readouterr().out


def test_a_table_lines_its_columns_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("", "calls"), [("one by one", "3,000"), ("fupan", "104")])
    assert capsys.readouterr().out == "            calls\none by one  3,000\nfupan         104\n"


def test_serial_calls_cannot_be_faster_than_the_limit() -> None:
    quick = [Attempt(at=0.1 * i, status=200) for i in range(1, 41)]
    assert extrapolate_serial(quick, 3000).seconds == 2940
    slow = [Attempt(at=2.0 * i, status=200) for i in range(1, 41)]
    cost = extrapolate_serial(slow, 3000)
    assert (cost.calls, cost.seconds, cost.rate_limited) == (3000, 6000, 0)


def test_many_at_a_time_are_extrapolated_from_the_pace_after_the_burst() -> None:
    burst = [Attempt(at=i / 10, status=200) for i in range(1, 61)]
    limited = [Attempt(at=6.0 + i / 10, status=429) for i in range(1, 401)]
    slow = [Attempt(at=6.5 + i, status=200) for i in range(1, 41)]
    attempts = sorted([*burst, *limited, *slow], key=lambda attempt: attempt.at)
    cost = extrapolate_concurrent(attempts, 0, 3000)
    assert cost.seconds == pytest.approx(2940, rel=0.05)
    assert cost.rate_limited == pytest.approx(29400, rel=0.05)
    with pytest.raises(ValueError, match="bigger"):
        extrapolate_concurrent(burst, 0, 3000)


def test_a_part_of_the_day_is_spread_over_all_of_it() -> None:
    day = make_seed_day(seed=3, records=400, poison=0)
    part = part_of(day, 40)
    assert len(part) == 40
    assert part[0] is day[0]
    assert part[-1] is day[390]


def _evaluation(themes: list[ThemeCount]) -> Evaluation:
    return Evaluation(9, 0, 0, {}, Pairwise(1, 1, 1), themes, 0)


def test_the_counts_of_the_report_are_held_against_the_results() -> None:
    held = _evaluation([ThemeCount("t1", 7, {}), ThemeCount("t2", 2, {})])
    report = {
        "themes": [
            {"id": "t1", "records": 7},
            {"id": "t2", "records": 3},
            {"id": "t3", "records": 1},
        ]
    }
    assert theme_count_errors(report, held) == 2


def test_a_ledger_that_does_not_balance_is_seen() -> None:
    ledger = {"read": 5, "records": 4, "rejected": 1, "skipped": 0, "answered": 3, "recalled": 0}
    ledger |= {"folded": 1, "review": 0, "failed": 0, "unasked": 0}
    assert ledger_errors(ledger) == 0
    assert ledger_errors(ledger | {"rejected": 0}) == 1
    assert ledger_errors(ledger | {"folded": 0, "rejected": 0}) == 2


def test_failed_records_are_named_by_file_and_position(tmp_path: Path) -> None:
    row = b'{"id":"r1","source":"day/input/chat.jsonl","position":120,"text":"..."}\n'
    (tmp_path / "failed.jsonl").write_bytes(row)
    assert failed_keys(tmp_path) == [("chat.jsonl", 120)]


def _stats(**more: Any) -> dict[str, Any]:
    analysis = {"answers": 110, "first_answer": 2.0, "last_answer": 70.0}
    classes = {"analysis": analysis, "other": {"answers": 3}}
    return {"requests": 116, "by_status": {"200": 113, "429": 3}, "classes": classes, **more}


def test_the_bars_of_the_seed_day() -> None:
    assert all(bar.holds for bar in calls_bars(_stats()))
    assert not all(bar.holds for bar in calls_bars(_stats(by_status={"429": 4})))
    late = {"answers": 110, "first_answer": 2.0, "last_answer": 78.0}
    slow = _stats(classes={"analysis": late, "other": {"answers": 3}})
    assert [bar.holds for bar in calls_bars(slow)] == [True, True, True, False]


def test_the_bars_of_the_bad_day() -> None:
    kinds = ("server_error", "reset", "hang", "malformed", "missing", "cut")
    stats: dict[str, Any] = {
        "by_fault": {**dict.fromkeys(kinds, 3), "outage": 9},
        "pending_faults": 0,
        "good_answers": {"a": 1, "b": 1},
        "repeated_after_length": 0,
    }
    assert all(bar.holds for bar in bad_day.provider_bars(stats))
    for spoilt in (
        {"by_fault": {**stats["by_fault"], "hang": 2}},
        {"pending_faults": 1},
        {"good_answers": {"a": 2}},
        {"repeated_after_length": 1},
    ):
        assert not all(bar.holds for bar in bad_day.provider_bars(stats | spoilt))


def test_the_faults_of_the_bad_day_are_settings_of_the_provider() -> None:
    settings = Settings.model_validate(bad_day.fault_settings(seed=1))
    happened = list(settings.fault_schedule.values())
    assert {kind: happened.count(kind) for kind in set(happened)} == {
        "server_error": 12,
        "reset": 6,
        "hang": 4,
        "malformed": 12,
        "missing": 12,
        "cut": 6,
    }


def test_records_in_flight_at_a_kill_are_those_asked_before_and_ended_after() -> None:
    log = [
        {"request": 1, "records": ["a"]},
        {"request": 3, "records": ["b", "c"]},
        {"request": 2, "records": ["d"]},
        {"request": 4, "records": ["e"]},
    ]
    assert asked_in_flight(log, Killing(ended=1, begun=3, forced=0)) == {"b", "c", "d"}


def test_rows_are_compared_by_id_and_but_for_how_they_came_about() -> None:
    left: list[dict[str, Any]] = [
        {"id": "a", "via": "answered", "represented_by": None, "centroid": [0.1, 0.2]},
        {"id": "b", "via": "answered", "represented_by": None, "centroid": [0.3]},
    ]
    right: list[dict[str, Any]] = [
        {"id": "b", "via": "recalled", "represented_by": "a", "centroid": [0.300001]},
        {"id": "a", "via": "answered", "represented_by": None, "centroid": [0.1, 0.25]},
        {"id": "c", "via": "answered", "represented_by": None, "centroid": []},
    ]
    assert different_rows(left, left) == {}
    assert different_rows(left, right) == {"centroid": 1, "id": 1}


def test_the_command_is_what_a_user_types(tmp_path: Path) -> None:
    workload = Workload(tmp_path, [], {}, scale=2.0)
    command = fupan_command(workload, "http://127.0.0.1:1/v1", tmp_path / "out", tmp_path / "a.db")
    assert command[1:4] == ["-m", "job", "run"]
    assert command[command.index("--rpm") + 1] == "120"
    assert command[command.index("--burst") + 1] == "60"


_PARENT = (
    "import subprocess, sys, time;"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print('started', flush=True); time.sleep(600)"
)


def test_killing_a_command_leaves_none_of_its_processes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Command([sys.executable, "-c", _PARENT], log, death_seconds=0.2) as command:
        deadline = time.monotonic() + 240
        while not log.read_text().startswith("started") and time.monotonic() < deadline:
            time.sleep(0.01)
        tree = process_tree(command.pid)
        assert len(tree) == 2
        assert pss_bytes(tree) > 2**20
        assert command.kill() == 1, "the child that does not notice is ended by force"
        assert not command.running
    assert not alive(tree)


def test_a_command_that_ends_tells_its_exit_code_and_last_words(tmp_path: Path) -> None:
    code = "import sys; print('done'); sys.exit(3)"
    finished = run_command([sys.executable, "-c", code], tmp_path / "log")
    assert (finished.exit_code, finished.tail) == (3, "done")


@pytest.mark.slow
def test_a_naive_script_meets_the_limit_of_the_provider_of_the_day(tmp_path: Path) -> None:
    write_seed_day(tmp_path / "day", seed=1, records=150)
    entries = make_seed_day(seed=1, records=150, poison=0)
    truth = read_truth(tmp_path / "day" / "truth.json")
    workload = Workload(tmp_path / "day", entries, truth, scale=20.0)
    settings = provider_settings(workload, log=tmp_path / "requests.jsonl")
    with Provider(settings) as provider:
        script = Script(provider.base_url, workload.scale)
        script.run(entries[:110], at_a_time=10)
        stats = provider.stats()
        assert stats["by_status"]["429"] == sum(a.status == 429 for a in script.attempts) > 0
        assert stats["classes"]["analysis"]["answers"] == 110 - script.lost
        assert len(provider.log()) == stats["requests"]


def test_a_folder_that_is_not_empty_is_not_worked_in(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(SystemExit):
        cli.main(["seed-day", "--keep", str(tmp_path)])
    assert (tmp_path / "mine").read_text() == "keep"


def test_groups_are_judged_by_the_lines_of_each_template() -> None:
    perfect = judge(["x", "x", "y"], ["A", "A", "B"])
    assert (perfect.groups, perfect.purity, perfect.accuracy) == (2, 1, 1)
    # A template in two groups is pure and wrong; two templates in one group are neither.
    split = judge(["x", "z", "y", "y"], ["A", "A", "B", "B"])
    assert (split.groups, split.purity, split.accuracy) == (3, 1, 0.5)
    merged = judge(["x", "x", "x", "y"], ["A", "A", "B", "C"])
    assert (merged.groups, merged.purity, merged.accuracy) == (2, 0.75, 0.25)
