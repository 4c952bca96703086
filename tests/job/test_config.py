from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from job.config import resolve
from job.config_file import load_config
from job.errors import UsageError
from job.flags import Flags
from job.storage.place import Place
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
    ("change", "said"),
    [
        ("runn: {}", "runn: unknown key, did you mean run"),
        ("run: {provder: x}", "run.provder: unknown key, did you mean provider"),
        (
            "inputs: [{path: x, kinds: x}]",
            r"inputs.0.kinds: .* kind\? \(known: path, kind, map, skip",
        ),
        (
            "providers: {a: {base_url: 'https://x', models: [m], limits: {rqm: 1}}}",
            "did you mean rpm",
        ),
        ("inputs: [{kind: operation}]", "inputs.0.path: is missing"),
        ("inputs: [{path: x, skip: health}]", "inputs.0.skip: must be a list"),
        ("inputs: {path: x}", "inputs: must be a list"),
        ("inputs: [{path: x, map: {level: 5}}]", "inputs.0.map.level: must be text"),
        ("run: {max_failed: 2}", "run.max_failed"),
        ("providers: {a: {base_url: 'ftp://x', models: [m]}}", "base_url"),
        ("providers: {a: {base_url: 'https://u:p@x', models: [m]}}", "belong in the environment"),
        ("providers: {a: {base_url: 'https://x', models: []}}", "models"),
        (
            "inputs: [{path: x, kind: poem}]",
            "kind: must be 'conversation', 'operation' or 'feedback'",
        ),
        ("a: [", "not valid YAML"),
        ("run: {out: a}\ninputs: []\nrun: {out: b}", "yaml, line 3.*'run' stands twice, in line 1"),
        ("run: {out: a, mode: single, out: b}", "line 1, column 29: 'out' stands twice"),
        ("[]", "dictionary"),
        ("providers: {extractive: {base_url: 'https://x', models: [m]}}", "built in"),
        ("providers: {local: {base_url: 'https://x', models: [m]}}", "built in"),
        ("providers: {a/b: {base_url: 'https://x', models: [m]}}", "NAME/MODEL"),
        ("providers: {a: {base_url: 'https://x/v1?k=1', models: [m]}}", "query or a fragment"),
        ("providers: {a: {base_url: 'https://x/v1#k', models: [m]}}", "query or a fragment"),
        ("providers: {a: {base_url: 'https://x:99999/v1', models: [m]}}", "not an http"),
        ("providers: {a: {base_url: 'https://x', models: [m], limits: {rpm: .inf}}}", "rpm"),
        ("inputs: [{path: x, map: {txt: content}}]", "'txt'.*rating"),
        ("run: {date: 2026-02-31}", "day"),
        ("run: {max_failed: .nan}", "max_failed"),
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


def configured(tmp_path: Path, text: str) -> str:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("named", ["extractive", "local"])
def test_a_url_on_the_command_line_wins_over_the_built_in_of_the_file(
    tmp_path: Path, named: str
) -> None:
    config = configured(tmp_path, f"run: {{provider: {named}}}")
    settings = resolve(Flags(inputs=("x",), config=config, base_url=URL, model="m"))
    assert settings.provider is not None
    assert (settings.provider_name, settings.provider.base_url) == ("openai", URL)


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://llm.example/v2", "LLM_SECRET"),
        ("https://llm.example:443/v1", "LLM_SECRET"),
        ("https://other.example/v1", None),
        ("http://llm.example/v1", None),
        ("https://llm.example:8443/v1", None),
        ("https://LLM.example.evil/v1", None),
    ],
)
def test_a_key_never_goes_to_another_server_than_its_own(
    tmp_path: Path, url: str, variable: str | None
) -> None:
    config = configured(
        tmp_path,
        "providers: {a: {base_url: 'https://llm.example/v1', key_env: LLM_SECRET, models: [m]}}",
    )
    flags = Flags(inputs=("x",), config=config, provider="a", base_url=url)
    provider = resolve(flags).provider
    assert provider is not None
    assert provider.key_env == variable
    provider = resolve(replace(flags, api_key_env="MINE")).provider
    assert provider is not None
    assert provider.key_env == "MINE"


def test_prices_and_what_a_server_takes_hold_for_that_server_only(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        "providers: {a: {base_url: 'https://llm.example/v1', models: [m, n], context: 4096, "
        "json: words, extra_body: {top_k: 1}, tiers: {fast: m, powerful: n}, "
        "prices: {currency: CNY, input: 0.1, output: 0.2}}}",
    )
    flags = Flags(inputs=("x",), config=config, provider="a")
    own = resolve(replace(flags, base_url="https://llm.example/v2", max_spend=1.0)).provider
    other = resolve(replace(flags, base_url="https://other.example/v1")).provider
    assert own is not None
    assert other is not None
    assert (own.prices is None, own.extra_body, own.json_mode) == (False, {"top_k": 1}, "words")
    assert (other.prices, other.extra_body, other.json_mode) == (None, {}, "auto")
    assert (other.models, other.context) == (("m",), 4096)
    with pytest.raises(UsageError, match=r"what m costs at https://other\.example/v1 is not known"):
        resolve(replace(flags, base_url="https://other.example/v1", max_spend=1.0))
    with pytest.raises(UsageError, match="--model auto needs tiers"):
        resolve(replace(flags, base_url="https://other.example/v1", model="auto"))


def test_openais_key_goes_to_openai_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = Flags(inputs=("x",), provider="openai", model="m")
    ours, other = resolve(flags).provider, resolve(replace(flags, base_url=URL)).provider
    assert ours is not None
    assert other is not None
    assert (ours.base_url, ours.key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    assert (other.base_url, other.key_env) == (URL, None)


def test_a_day_in_the_file_needs_no_quotes(tmp_path: Path) -> None:
    config = configured(tmp_path, "run: {date: 2026-03-14}")
    assert resolve(Flags(inputs=("x",), config=config)).explicit_date == date(2026, 3, 14)


def test_a_file_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_bytes("run: {out: 复盘}".encode("gb18030"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load_config(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "providers: {a: {base_url: 'ftp://u:hunter2@x', models: [m]}}",
        "providers: {a: {base_url: 'https://u:hunter2@x/v1', models: [m]}}",
        "providers: {a: {base_url: 'https://x/v1?key=hunter2', models: [m]}}",
        "providers: {a: {base_url: 'nothing://u:hun/ter2@x', models: [m]}}",
        "providers: {a: {base_url: 'https://x', key_env: sk-hunter2, models: [m]}}",
        "providers: {a: {base_url: 'https://u:hunter2@x' models: [m]}}",
        "providers: {a: {base_url: 'https://x', models: hunter2}}",
    ],
)
def test_a_secret_in_the_file_is_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(configured(tmp_path, text))
    assert "hunter2" not in str(caught.value)
    assert "hun/ter2" not in str(caught.value)


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


@pytest.mark.parametrize("key", ["sk-schlüssel", "sk-a b", "sk-a\nb", "sk-\x00", "密钥"])
def test_what_cannot_be_a_key_is_said_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    provider = Provider(base_url="https://llm.example/v1", models=("m",), key_env="MINE")
    monkeypatch.setattr(os, "environ", {"MINE": key})
    with pytest.raises(Misconfigured, match="MINE holds no key") as caught:
        api_key(provider)
    assert key not in str(caught.value)
