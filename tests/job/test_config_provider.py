"""Which server is asked, and what goes there: keys, prices and what it takes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from job.config import resolve
from job.errors import UsageError
from job.flags import Flags
from serve.ask.errors import Misconfigured
from serve.ask.settings import Provider, api_key

URL = "https://x/v1"


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
