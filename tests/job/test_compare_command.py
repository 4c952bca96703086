"""`fupan compare` and `run --canary`, as a user types them, on a real Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from job import cli
from job.commands.compare import instructions
from job.compress.outcome import Outcome, encode, kept_name
from job.config import resolve
from job.flags import Flags
from job.planning import plan_run
from serve.ask.answers import Answers
from serve.simulated import SimulatedProvider
from tests.command import Ended, fupan, read_json, read_results
from tests.job.trials import FADES_FROM, WORDS, provider_settings

RECORDS = 150
HOSTS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log whose entries differ in a word, so that none is folded."""
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = [
        f"2026-03-14 10:{n // 60:02}:{n % 60:02} INFO {WORDS[n % 3]} in room {host}\n"
        for n, host in enumerate(HOSTS[:RECORDS])
    ]
    (folder / "day.log").write_text("".join(lines))
    return folder


@pytest.fixture
def fading() -> Iterator[SimulatedProvider]:
    settings = provider_settings(fades_from=FADES_FROM, fades_as="wrong")
    with SimulatedProvider(settings) as server:
        yield server


def asking(server: SimulatedProvider, command: str, logs: Path, *more: str | Path) -> Ended:
    return fupan(
        *(command, logs, "--base-url", server.base_url, "--model", "simulated"),
        *("--answers", logs.parent / "answers.db", "--language", "en", "--timezone", "UTC"),
        *more,
        LLM_API_KEY="unchecked",
    )


def test_nothing_is_asked_where_the_question_makes_no_sense(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "unchecked")
    answers = ("--answers", str(logs.parent / "answers.db"))
    words = ("compare", str(logs), "--base-url", "http://127.0.0.1:1/v1", "--model", "one")
    for wrong, said in (
        (("--with-model", "two", "--with-instructions", "rules.txt"), "one thing at a time"),
        (("--with-model", "one"), "that is the model itself"),
        (("--with-model", "two,three"), "name one model"),
        (("--with-model", "auto"), "name one model"),
        (("--out", str(logs / "day.log" / "compared")), "cannot write to --out"),
        (("--with-instructions", "nowhere.txt"), "nowhere.txt"),
        (("--mode", "packed"), "both modes are compared"),
        (("--share", "0"), "--share"),
        (("--share", "nan"), "--share"),
        (("--max-spend", "1"), "what one costs"),
    ):
        ended = CliRunner().invoke(cli.app, [*words, *wrong, *answers])
        assert (ended.exit_code, said in ended.stderr) == (2, True), ended.stderr
    rules = ["compare", str(logs), "--provider", "extractive", *answers]
    assert "compare asks a model" in CliRunner().invoke(cli.app, rules).stderr
    canary = ["run", *words[1:], "--canary", "10", "--mode", "single", *answers]
    assert "--canary" in CliRunner().invoke(cli.app, canary).stderr


def test_ctrl_c_says_that_a_comparison_begins_anew(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*values: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("job.commands.compare.compare", interrupted)
    words = ["compare", str(logs), "--base-url", "http://127.0.0.1:1/v1", "--model", "one"]
    ended = CliRunner().invoke(cli.app, [*words, "--answers", str(logs.parent / "answers.db")])
    assert ended.exit_code == 4
    assert "begins anew" in ended.stderr
    assert "goes on from here" not in ended.stderr


def test_instructions_are_compared_as_a_run_would_tell_them(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, answers = logs.parent / "rules.txt", logs.parent / "answers.db"
    rules.write_text("- A refund that takes more than 3 days is a problem of high severity.\n" * 12)
    config = logs.parent / "fupan.yaml"
    config.write_text(
        f"run: {{instructions: {rules}, compress_instructions: true, language: en}}\n"
        "providers: {it: {base_url: 'http://127.0.0.1:1/v1', models: [one], key_env: KEY}}\n"
    )
    monkeypatch.setenv("KEY", "unchecked")
    settings = resolve(Flags(inputs=(str(logs),), config=str(config), answers=str(answers)))
    assert settings.provider is not None
    plan = plan_run(settings, keep=False)
    told, warnings = instructions(settings, settings.provider, plan)
    assert told == settings.own_instructions
    assert "as they are written" in warnings[0]
    short = Outcome("- Refund > 3 days: high.", None)
    with Answers(answers) as store:
        store.keep_learned(kept_name(settings.own_instructions, "one"), encode(short))
    assert instructions(settings, settings.provider, plan) == (short.text, ())


@pytest.mark.ray
def test_compare_says_from_which_position_packs_fade(logs: Path, fading: SimulatedProvider) -> None:
    out = logs.parent / "compared"
    ended = asking(fading, "compare", logs, "--share", "100", "--out", out, "--json")
    assert ended.code == 3, ended.err
    found = orjson.loads(ended.out)
    assert found == read_json(out / "compare.json")
    assert (found["verdict"], found["reason"]) == ("bad", "fades")
    assert found["position"] == FADES_FROM
    assert found["exit_code"] == 3
    assert f"from position {FADES_FROM} of" in found["in_words"]["en"]
    assert f"从第 {FADES_FROM} 条起" in found["in_words"]["zh"]
    calls = sum(found[side]["calls"]["requests"] for side in ("first", "second", "first_again"))
    assert calls == fading.stats()["requests"]
    # Nothing was stored: a run would ask everything.
    assert not (logs.parent / "answers.db").exists()


@pytest.mark.thorough
@pytest.mark.ray
def test_an_honest_model_compared_with_another_is_good(logs: Path) -> None:
    with SimulatedProvider(provider_settings(models=("simulated", "other"))) as server:
        ended = asking(server, "compare", logs, "--with-model", "other", "--share", "100")
    assert ended.code == 0, ended.err
    assert any(line.startswith("verdict   good: ") for line in ended.lines)


@pytest.mark.ray
def test_a_comparison_that_cannot_be_paid_for_stops(logs: Path) -> None:
    config = logs.parent / "fupan.yaml"
    with SimulatedProvider(provider_settings()) as server:
        config.write_text(
            f"providers:\n  dear:\n    base_url: {server.base_url}\n    models: [simulated]\n"
            "    key_env: LLM_API_KEY\n    prices: {currency: USD, input: 10, output: 10}\n"
        )
        words = ("--provider", "dear", "--config", config, "--max-spend", "0.3", "--share", "100")
        ended = fupan(
            *("compare", logs, *words, "--answers", logs.parent / "answers.db"),
            LLM_API_KEY="unchecked",
        )
        spent = server.stats()["prompt_tokens"] + server.stats()["completion_tokens"]
    assert ended.code == 4, ended.err
    assert "0.3 USD" in ended.err
    assert 0 < spent * 10 / 1_000_000 <= 0.3


def run_canary(server: SimulatedProvider, logs: Path, *more: str) -> tuple[Ended, Any]:
    out = logs.parent / "retro"
    ended = asking(server, "run", logs, "--out", out, "--canary", "60", *more)
    assert ended.code == 0, ended.err
    return ended, read_json(out / "report.json")


@pytest.mark.ray
def test_a_bad_canary_has_every_record_asked_by_itself(
    logs: Path, fading: SimulatedProvider
) -> None:
    ended, report = run_canary(fading, logs)
    canary = report["run"]["canary"]
    assert (canary["verdict"], canary["position"]) == ("bad", FADES_FROM)
    assert report["run"]["mode"] == report["method"]["mode"] == canary["mode"] == "single"
    page = (logs.parent / "retro" / "report.md").read_text()
    assert f"from position {FADES_FROM} of" in page.split("\n## ")[0]
    assert "the canary is bad" in ended.err
    ledger = report["ledger"]
    assert ledger["calls"]["requests"] == fading.stats()["requests"]
    # The canary's answers in single mode are used, and no other than right ones.
    assert (ledger["recalled"], ledger["answered"]) == (90, 60)
    wanted = {"disk is full": "problem", "login refused": "problem", "all is well": "normal"}
    for row in read_results(logs.parent / "retro"):
        phrase = next(words for words in wanted if words in row["text"])
        assert row["outcome"] == wanted[phrase]
        assert row["issues"] == [] or row["issues"][0]["event"] == phrase
    # The same command goes on in the same mode, and pays for nothing.
    before = fading.stats()["requests"]
    _, report = run_canary(fading, logs)
    assert fading.stats()["requests"] == before
    assert report["run"]["mode"] == "single"
    assert report["run"]["canary"] == canary


@pytest.mark.thorough
@pytest.mark.ray
def test_a_good_canary_leaves_packs_and_its_answers_are_used(logs: Path) -> None:
    with SimulatedProvider(provider_settings()) as server:
        ended, report = run_canary(server, logs)
        assert report["run"]["canary"]["verdict"] == "good"
        assert report["run"]["mode"] == "packed"
        assert (report["ledger"]["recalled"], report["ledger"]["answered"]) == (90, 60)
        assert report["ledger"]["calls"]["requests"] == server.stats()["requests"]
        page = (logs.parent / "retro" / "report.md").read_text()
        assert "Packing many records" not in page
        assert "warning" not in ended.err
