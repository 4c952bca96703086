from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from job.config import resolve
from job.config_file import load_config
from job.errors import UsageError
from job.options import Flags
from serve.ask.errors import Misconfigured
from serve.ask.settings import Provider, api_key

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
    assert settings.out == Path("retro/2026-03-14")
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
    assert (settings.language, settings.out) == ("en", Path("x"))


def test_a_model_of_the_provider_can_be_named(designed: str) -> None:
    assert resolve(Flags(config=designed, provider="domestic/chat-small")).model == "chat-small"
    assert resolve(Flags(config=designed, provider="extractive")).provider is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("runn: {}", "runn"),
        ("run: {provder: x}", "run.provder"),
        ("run: {max_failed: 2}", "run.max_failed"),
        ("providers: {a: {base_url: 'ftp://x', models: [m]}}", "base_url"),
        ("providers: {a: {base_url: 'https://u:p@x', models: [m]}}", "belong in the environment"),
        ("providers: {a: {base_url: 'https://x', models: []}}", "models"),
        ("inputs: [{path: x, kind: poem}]", "kind"),
        ("a: [", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_text(change)
    with pytest.raises(UsageError, match=said):
        load_config(str(path))


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
        Flags(inputs=("x",), provider="local"),
        Flags(inputs=("x",), base_url="https://x/v1", model="m", rpm=-1),
        Flags(inputs=("x",), config="/nowhere/fupan.yaml"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        resolve(flags)


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


def test_a_key_is_read_from_the_named_variable_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for others")
    monkeypatch.delenv("LLM_API_KEY", raising=False)
    remote = Provider(base_url="https://llm.example/v1", models=("m",))
    with pytest.raises(Misconfigured, match="LLM_API_KEY"):
        api_key(remote)
    assert api_key(Provider(base_url="http://127.0.0.1:8009/v1", models=("m",))) is None
    monkeypatch.setenv("MINE", " key \n")
    assert api_key(remote.model_copy(update={"key_env": "MINE"})) == "key"
    with pytest.raises(Misconfigured, match="MISSING"):
        api_key(Provider(base_url="http://127.0.0.1:1/v1", models=("m",), key_env="MISSING"))
