"""The `models` section of fupan.yaml, and what the gateway makes of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from job.config_file import load_config
from job.errors import UsageError
from serve.gateway.bound import Costs
from serve.gateway.contract import Target
from serve.gateway.names import Names
from serve.gateway.paths import absolute
from serve.gateway.settings import GatewaySettings
from serve.gateway.terms import terms_of
from serve.models.settings import EmbedderSettings, PoolSettings
from tests.serve.cache_calls import a_call

MODELS: dict[str, Any] = {
    "e5": {"embedder": "bundled", "replicas": "auto"},
    "smollm": {"generator": "smollm2-135m", "context": 2048, "gpus": 0.5},
    "rare": {"pool": {"tiny": {"generator": "tiny"}}, "loaded": 1, "idle_to_zero": 60},
}


def gateway(**sections: Any) -> GatewaySettings:
    return GatewaySettings.model_validate({"models": MODELS, **sections})


def said(tmp_path: Path, models: object) -> str:
    """What is said about a fupan.yaml with this section."""
    file = tmp_path / "fupan.yaml"
    file.write_text(yaml.safe_dump({"models": models}))
    with pytest.raises(UsageError) as caught:
        load_config(str(file))
    return str(caught.value).partition(": ")[2]


def test_settings_are_the_same_on_the_other_side_of_a_wire() -> None:
    settings = gateway()
    assert GatewaySettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({"m": {"embedder": "x", "context": 9}}, "models.m.context: unknown key (known: "),
        ({"m": {"generator": "x", "contxt": 9}}, "models.m.contxt: unknown key, did you mean con"),
        (
            {"m": {"gpus": 1}},
            "models.m: write exactly one of embedder, generator and pool: it has only gpus",
        ),
        (
            {"m": {"embedder": "x", "generator": "y"}},
            "models.m: write exactly one of embedder, generator and pool: it has embedder and gen",
        ),
        ({"m": {}}, "models.m: write exactly one of embedder, generator and pool: it has only no"),
        (
            {"p": {"pool": {"m": {"embder": "x"}}}},
            "models.p.pool.m: write exactly one of embedder and generator: it has only embder",
        ),
        (
            {"p": {"pool": {"m": {"embedder": "x"}}, "generator": "y"}},
            "models.p: write exactly one of embedder, generator and pool: it has generator and p",
        ),
        ({"m": {"embedder": "x", "gpus": 2}}, "models.m.gpus: Input should be less than or equal"),
        ({"m": {"embedder": "x", "replicas": "many"}}, "models.m.replicas: a number, auto, or"),
        ({"m": {"embedder": "x", "replicas": {"min": 3, "max": 2}}}, "models.m.replicas: min 3"),
        ({"a/b": {"embedder": "x"}}, "models.a/b.[key]: String should match"),
        ({"p": {"pool": {"m": {"embedder": "x", "gpus": 1}}}}, "models.p: gpus of m belongs to"),
        (
            {"m": {"generator": "x", "gpus": 0, "accelerator_type": "L4"}},
            "models.m: accelerator_type is said of a GPU, and gpus: 0 wants none",
        ),
        (
            {"m": {"embedder": "bundled", "accelerator_type": "L4"}},
            "models.m: accelerator_type is said of a GPU, and bundled computes on the CPU alone",
        ),
        (
            {"p": {"pool": {"m": {"embedder": "bundled"}}, "accelerator_type": "L4"}},
            "models.p: accelerator_type is said of a GPU, and bundled computes",
        ),
        (
            {"m": {"embedder": "x"}, "p": {"pool": {"m": {"embedder": "x"}}}},
            "models: 'm' names 2 things",
        ),
    ],
)
def test_what_makes_no_sense_is_named_by_its_key(
    tmp_path: Path, models: object, expected: str
) -> None:
    assert said(tmp_path, models).startswith(expected)


def test_a_model_of_the_cluster_has_two_names_and_goes_before_a_providers() -> None:
    provider = {"base_url": "http://127.0.0.1:9/v1", "models": ["e5", "chat"]}
    serve = {"names": {"any": {"use": ["local/smollm", "main/chat"]}}}
    names = Names(gateway(providers={"main": provider}, serve=serve))
    assert names.resolve("e5", {}) == names.resolve("local/e5", {}) == (Target("local", "e5"),)
    assert names.resolve("main/e5", {}) == (Target("main", "e5"),)
    assert names.resolve("tiny", {}) == (Target("local", "tiny"),)
    assert names.resolve("any", {}) == (Target("local", "smollm"), Target("main", "chat"))
    owners = {entry.id: entry.owned_by for entry in names.entries()}
    assert owners["local/smollm"] == owners["smollm"] == "local"
    assert "rare" not in owners


def test_a_gateway_needs_somebody_to_ask_and_local_is_taken() -> None:
    assert gateway().providers == {}
    with pytest.raises(ValueError, match="nobody to ask"):
        gateway(models={})
    with pytest.raises(ValueError, match="own models are called"):
        gateway(providers={"local": {"base_url": "http://127.0.0.1:9/v1", "models": ["m"]}})


def test_a_model_of_the_cluster_is_free_in_every_currency_unless_it_has_prices() -> None:
    free = a_call("hello", targets=(Target("local", "smollm"),))
    assert Costs(terms_of(gateway())).most(free, "CNY") == 0
    prices = {"currency": "CNY", "output": 1_000_000}
    priced = gateway(models={"smollm": {**MODELS["smollm"], "prices": prices}})
    assert Costs(terms_of(priced)).most(free, "CNY") == Decimal(2048)


def test_a_path_is_seen_from_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    models = {
        "here": {"embedder": "weights"},
        "named": {"embedder": "BAAI/bge-m3"},
        "rare": {"pool": {"too": {"embedder": "./weights"}}},
    }
    found = absolute(gateway(models=models), tmp_path).models
    here, named, rare = found["here"], found["named"], found["rare"]
    assert isinstance(here, EmbedderSettings)
    assert isinstance(named, EmbedderSettings)
    assert isinstance(rare, PoolSettings)
    assert (here.embedder, named.embedder) == (str(tmp_path / "weights"), "BAAI/bge-m3")
    assert rare.pool["too"] == here
