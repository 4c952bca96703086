"""The whole flow on a real Ray cluster, as a user starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.days.provider import poison_phrase
from scripts.days.score import evaluate, read_predictions
from scripts.days.seed_day import write_seed_day
from scripts.days.truth import read_truth
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json, read_lines, read_results
from tests.job.quoting import check_quotes

pytestmark = pytest.mark.ray

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS = 240
SCALE = 50.0


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    write_seed_day(folder, seed=3, records=RECORDS, poison=0)
    return folder


def provider(day: Path, **fields: object) -> SimulatedProvider:
    truth = load_truth(day / "provider.json")
    return SimulatedProvider(
        Settings.model_validate({"truth": truth, "time_scale": SCALE, **fields})
    )


def arguments(day: Path, server: SimulatedProvider, out: Path, answers: Path) -> list[str]:
    return [
        *("run", str(day / "input"), "--out", str(out), "--answers", str(answers)),
        *("--base-url", server.base_url, "--model", "simulated", "--timezone", "UTC"),
    ]


def check_account(out: Path) -> None:
    """The account balances, from the files alone."""
    ledger = read_json(out / "ledger.json")
    rows = read_results(out)
    assert ledger["read"] == ledger["records"] + ledger["rejected"] + ledger["skipped"]
    assert ledger["records"] == len(rows) == len({row["id"] for row in rows})
    for via in ("answered", "recalled", "folded", "review", "failed", "unasked"):
        assert ledger[via] == sum(row["via"] == via for row in rows)
    assert len(read_lines(out / "failed.jsonl")) == ledger["failed"]
    assert len(read_lines(out / "rejected.jsonl")) == ledger["rejected"]


def test_the_sample_day_without_a_model(tmp_path: Path) -> None:
    out = tmp_path / "retro"
    answers = tmp_path / "answers.db"
    ended = fupan(
        *("run", DOCS / "sample-day", "--out", out, "--answers", answers),
        *("--timezone", "Asia/Shanghai", "--provider", "extractive"),
    )
    assert ended.code == 0, ended.err
    check_account(out)
    assert ended.lines[-2].startswith("300 read = 300 records")
    assert str(out / "report.html") in ended.out
    assert "No language model was used" in ended.out
    assert (out / ".work").exists() is False
    evaluation = evaluate(read_truth(DOCS / "sample-day-truth.json"), read_predictions(out))
    assert evaluation.pairwise.f1 >= 0.8
    assert check_quotes(out) > 0
    rendered = read_json(out / "report.json")
    for name in ("report.html", "report.json"):
        (out / name).unlink()
    assert fupan("report", out).code == 0
    assert (out / "report.html").exists()
    again = read_json(out / "report.json")
    assert {**again, "timing": None} == {**rendered, "timing": None}


def test_a_day_is_answered_rightly_and_paid_once(day: Path, tmp_path: Path) -> None:
    out, answers = tmp_path / "retro", tmp_path / "a" / "answers.db"
    with provider(day) as server:
        command = arguments(day, server, out, answers)
        ended = fupan(*command)
        assert ended.code == 0, ended.err
        check_account(out)
        first = server.stats()
        rows = read_results(out)
        evaluation = evaluate(read_truth(day / "truth.json"), read_predictions(out))
        assert evaluation.pairwise.f1 >= 0.95
        assert evaluation.wrong == 0
        assert max(first["good_answers"].values()) == 1
        assert first["classes"]["analysis"]["answers"] <= 16
        again = fupan(*command)
        assert again.code == 0, again.err
        assert server.stats()["requests"] == first["requests"]
    check_account(out)
    assert read_json(out / "ledger.json")["recalled"] == RECORDS
    ignored = {"via", "represented_by"}
    assert [{k: v for k, v in row.items() if k not in ignored} for row in read_results(out)] == [
        {k: v for k, v in row.items() if k not in ignored} for row in rows
    ]


def test_a_poisoned_record_fails_alone_and_the_exit_code_says_so(tmp_path: Path) -> None:
    write_seed_day(tmp_path, seed=4, records=60, poison=2)
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(tmp_path, poison=(poison_phrase(),)) as server:
        ended = fupan(*arguments(tmp_path, server, out, answers))
        allowed = fupan(*arguments(tmp_path, server, out, answers), "--max-failed", "0.5")
    assert ended.code == 3
    assert "2 records failed" in ended.err
    check_account(out)
    failed = read_lines(out / "failed.jsonl")
    assert {row["reason"] for row in failed} == {"refused"}
    assert all(row["provider_message"] for row in failed)
    assert allowed.code == 0


def test_an_empty_account_stops_early_and_the_same_command_goes_on(
    day: Path, tmp_path: Path
) -> None:
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(day, quota_after=4) as server:
        ended = fupan(*arguments(day, server, out, answers))
        assert ended.code == 4, ended.err
        check_account(out)
        stopped = read_json(out / "report.json")["run"]["stopped"]
        assert "quota" in stopped["reason"]
        paid = server.stats()["good_answers"]
    assert read_json(out / "ledger.json")["unasked"] > 0
    with provider(day) as server:
        command = arguments(day, server, out, answers)
        refused = fupan(*command)
        assert refused.code == 2
        ended = fupan(*command, "--overwrite")
        assert ended.code == 0, ended.err
        assert not set(server.stats()["good_answers"]) & set(paid)
    check_account(out)


def test_an_interrupt_leaves_a_labelled_partial_report(day: Path, tmp_path: Path) -> None:
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(day, time_scale=1.0) as server:
        command = [*arguments(day, server, out, answers), "--mode", "single"]
        process = subprocess.Popen(
            [sys.executable, "-m", "job", *command],
            env=os.environ,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        while server.stats()["answers"] < 5:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=480)
    assert process.returncode == 4, said
    assert "STOPPED EARLY: interrupted" in printed
    check_account(out)
    ledger = read_json(out / "ledger.json")
    assert ledger["answered"] >= 5
    assert ledger["unasked"] > 0


def test_a_killed_worker_loses_nothing_and_pays_for_nothing_twice(
    day: Path, tmp_path: Path
) -> None:
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(day, time_scale=1.0, latency=((100, 0.3), (8000, 0.3))) as server:
        command = [*arguments(day, server, out, answers), "--mode", "single"]
        with subprocess.Popen(
            [sys.executable, "-m", "job", *command],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as process:
            while server.stats()["answers"] < 20:
                assert process.poll() is None
            victims = asking_workers(process.pid)
            in_flight = server.stats()["in_flight"]
            assert len(victims) == 1
            os.kill(victims[0], signal.SIGKILL)
            _, said = process.communicate(timeout=480)
        twice = sum(count > 1 for count in server.stats()["good_answers"].values())
    assert process.returncode == 0, said
    assert twice <= in_flight + 20
    check_account(out)
    assert len(read_results(out)) == RECORDS


def asking_workers(ancestor: int) -> list[int]:
    """Processes of the asking actor below a process."""
    parents, titles = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                pid = int(folder.name)
                stat = (folder / "stat").read_text()
                parents[pid] = int(stat.rpartition(")")[2].split()[1])
                titles[pid] = (folder / "cmdline").read_bytes()
    found = []
    for pid, title in titles.items():
        above: int | None = pid
        while above is not None and above != ancestor:
            above = parents.get(above)
        if above == ancestor and b"MapBatches(Analyse)" in title:
            found.append(pid)
    return found


@pytest.mark.parametrize("refused", [["json_schema"], ["json_schema", "json_object"]])
def test_a_provider_without_json_modes(day: Path, tmp_path: Path, refused: list[str]) -> None:
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(day, unsupported=refused) as server:
        ended = fupan(*arguments(day, server, out, answers))
    assert ended.code == 0, ended.err
    check_account(out)
    assert read_json(out / "ledger.json")["answered"] == RECORDS


def test_what_cannot_begin_says_why_and_is_exit_2(day: Path, tmp_path: Path) -> None:
    out, answers = tmp_path / "retro", tmp_path / "answers.db"
    with provider(day, api_key="right") as server:
        command = arguments(day, server, out, answers)
        wrong = fupan(*command, "--api-key-env", "TEST_KEY", TEST_KEY="wrong")
        assert wrong.code == 2, wrong.err
        assert "401" in wrong.err
        assert "wrong" not in wrong.err.replace("wrong key", "")
        missing = fupan(*command, "--api-key-env", "NO_SUCH_VARIABLE")
        assert missing.code == 2
        assert "NO_SUCH_VARIABLE" in missing.err
    nothing = fupan("run", tmp_path / "nowhere", "--out", out, "--answers", answers)
    assert nothing.code == 2
    assert "nowhere" in nothing.err
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "precious.txt").write_text("mine")
    ended = fupan("run", DOCS / "sample-day", "--out", foreign, "--answers", answers)
    assert ended.code == 2
    assert (foreign / "precious.txt").read_text() == "mine"
