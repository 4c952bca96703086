"""What a run is told by its file and its flags together."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from job.config import resolve
from job.errors import UsageError
from job.flags import Flags
from job.storage.place import Place

DESIGNED = """\
providers:
  domestic:
    base_url: https://llm.example/v1
    key_env: LLM_API_KEY
    models: [chat-large, chat-small]
    limits: {rpm: 60, tpm: 500000, burst: 60, max_concurrency: 20, share: 1.0}
    context: 65536
    max_output: 8192
    json: auto
    extra_body: {}
    prices: {currency: CNY, input: 2.0, cached: 0.2, output: 3.0}
run:
  provider: domestic
  date: yesterday
  timezone: Asia/Shanghai
  language: zh
  out: retro/{date}
  max_failed: 0.005
inputs:
  - {path: "logs/{date}/app/*.log", kind: operation, map: {level: lvl}, skip: ["health check"]}
  - {path: "feedback/{date}.csv", kind: feedback, map: {text: content, rating: star}}
privacy: {mask: [email, phone, id_card, card, secret], alias: [ip], keep_days: 30}
serve: {host: 127.0.0.1, port: 8000, keys_env: FUPAN_KEYS}
"""


@pytest.fixture
def designed(tmp_path: Path) -> str:
    path = tmp_path / "fupan.yaml"
    path.write_text(DESIGNED, encoding="utf-8")
    return str(path)


def test_the_designed_file_is_understood(designed: str) -> None:
    settings = resolve(Flags(config=designed, date="2026-03-14"))
    assert settings.provider is not None
    assert (settings.provider_name, settings.model) == ("domestic", "chat-large")
    assert settings.inputs[0].path == "logs/2026-03-14/app/*.log"
    assert settings.out == Place.of("retro/2026-03-14")
    assert settings.max_failed == 0.005
    assert settings.privacy.keep_days == 30
    assert str(settings.zone) == "Asia/Shanghai"


def test_flags_win_over_the_file(designed: str) -> None:
    settings = resolve(
        Flags(config=designed, rpm=10, model="other", context=4096, language="en", out="x")
    )
    assert settings.provider is not None
    assert settings.provider.limits.rpm == 10
    assert settings.provider.limits.tpm == 500000
    assert (settings.model, settings.provider.context) == ("other", 4096)
    assert (settings.language, settings.out) == ("en", Place.of("x"))


def test_a_model_of_the_provider_can_be_named(designed: str) -> None:
    assert resolve(Flags(config=designed, provider="domestic/chat-small")).model == "chat-small"
    assert resolve(Flags(config=designed, provider="extractive")).provider is None


@pytest.mark.parametrize(
    "flags",
    [
        Flags(),
        Flags(inputs=("x",), base_url="https://x/v1"),
        Flags(inputs=("x",), provider="nobody"),
        Flags(inputs=("x",), date="14.3."),
        Flags(inputs=("x",), timezone="Mars/Olympus"),
        Flags(inputs=("x",), kind=("*.log=poem",)),
        Flags(inputs=("x",), since="whenever"),
        Flags(inputs=("x",), out="s3://id:key@bucket/retro"),
        Flags(inputs=("x",), answers="s3://bucket/answers.db"),
        Flags(inputs=("x",), config="/nowhere/fupan.yaml"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        resolve(flags)


URL = "https://x/v1"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (Flags(provider="extractive", base_url=URL), "--provider extractive.*--base-url"),
        (Flags(provider="extractive", rpm=60), "--provider extractive.*--rpm"),
        (Flags(provider="typo", base_url=URL, model="m"), "no provider 'typo'"),
        (Flags(provider="/m", base_url=URL), "no provider ''"),
        (Flags(model="m"), "--model without a provider.*--base-url"),
        (Flags(rpm=60, tpm=9), "--rpm, --tpm without a provider"),
        (Flags(api_key_env="KEY"), "--api-key-env without a provider"),
        (Flags(max_concurrency=3), "--max-concurrency without a provider"),
        (Flags(base_url=URL, model="m", rpm=-1), "--rpm: .*greater than 0"),
        (Flags(base_url=URL, model="m", rpm=float("nan")), "--rpm"),
        (Flags(base_url=URL, model="m", tpm=0), "--tpm: .*greater than 0"),
        (Flags(base_url=URL, model="m", burst=0), "--burst: .*greater than 0"),
        (Flags(base_url=URL, model="m", max_concurrency=0), "--max-concurrency: .*greater than 0"),
        (Flags(base_url=URL, model="m", context=0), "--context: .*greater than 0"),
        (Flags(base_url="ftp://x", model="m"), "--base-url: .*not an http"),
        (Flags(base_url=URL, model="m", pack_tokens=199), "--pack-tokens: at least 200"),
        (Flags(sample=0), "--sample: at least 1"),
        (Flags(since="08:00", until="07:00"), "--since .* is not before --until"),
        (Flags(max_failed=1.01), "--max-failed: a share"),
        (Flags(max_failed=float("nan")), "--max-failed: a share"),
    ],
)
def test_a_flag_that_makes_no_sense_is_named(
    flags: Flags, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        resolve(replace(flags, inputs=("x",)))


def test_a_day_in_the_file_needs_no_quotes(tmp_path: Path) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_text("run: {date: 2026-03-14}")
    assert resolve(Flags(inputs=("x",), config=str(path))).explicit_date == date(2026, 3, 14)


def test_the_built_in_analyst_is_only_the_default_without_a_provider(
    designed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / ".")
    assert resolve(Flags(config=designed)).provider is not None
    (tmp_path / "fupan.yaml").unlink()
    assert resolve(Flags(inputs=("x",))).provider is None


def test_the_day_fills_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = resolve(Flags(inputs=("a/{date}.log",), date="2026-01-02"))
    assert settings.inputs[0].path == "a/2026-01-02.log"
    assert settings.explicit_date == date(2026, 1, 2)
