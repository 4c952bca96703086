"""Names of models: what each stands for, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from serve.ask.errors import Misconfigured
from serve.gateway.contract import Target
from serve.gateway.errors import BadRequest, UnknownModel
from serve.gateway.names import Names
from serve.gateway.settings import GatewaySettings

PROVIDERS = {
    "east": {"base_url": "http://127.0.0.1:1/v1", "models": ["large", "org/small"]},
    "west": {"base_url": "http://127.0.0.1:2/v1", "models": ["large", "other"]},
}


def names(**serve: Any) -> Names:
    return Names(GatewaySettings.model_validate({"providers": PROVIDERS, "serve": serve}))


def resolved(known: Names, name: str, **body: Any) -> list[str]:
    return [str(target) for target in known.resolve(name, body)]


def test_every_model_has_its_name_with_and_without_the_provider() -> None:
    listed = {entry.id: entry.owned_by for entry in names().entries()}
    assert listed == {
        "east/large": "east",
        "east/org/small": "east",
        "west/large": "west",
        "west/other": "west",
        "large": "east",
        "org/small": "east",
        "other": "west",
    }
    assert resolved(names(), "west/large") == ["west/large"]
    assert names().resolve("org/small", {}) == (Target("east", "org/small"),)


def test_a_bare_name_of_two_providers_is_the_firsts_alone() -> None:
    assert resolved(names(), "large") == ["east/large"]


def test_a_name_of_your_own_leads_to_its_models_in_turn_and_goes_before_theirs() -> None:
    known = names(names={"large": {"use": ["west/large", "east/large", "west/large"]}})
    assert resolved(known, "large") == ["west/large", "east/large"]
    assert {entry.id: entry.owned_by for entry in known.entries()}["large"] == "fupan"


def test_auto_asks_the_model_that_the_text_needs() -> None:
    known = names(
        names={"best": {"use": ["west/large", "east/large"]}},
        auto={"fast": "org/small", "powerful": "best"},
    )
    easy = [{"role": "user", "content": "hello"}]
    hard = [{"role": "user", "content": "Prove that the square root of two is irrational."}]
    assert resolved(known, "auto", messages=easy) == ["east/org/small"]
    assert resolved(known, "auto", messages=hard) == ["west/large", "east/large"]
    assert "auto" in {entry.id for entry in known.entries()}
    with pytest.raises(BadRequest):
        known.resolve("auto", {"input": "hello"})


def test_without_names_for_it_auto_goes_by_the_tiers_of_the_first_provider_that_has_them() -> None:
    tiered = {**PROVIDERS["west"], "tiers": {"fast": "other", "powerful": "large"}}
    known = Names(
        GatewaySettings.model_validate({"providers": {"east": PROVIDERS["east"], "west": tiered}})
    )
    assert resolved(known, "auto", messages=[{"role": "user", "content": "hi"}]) == ["west/other"]


@pytest.mark.parametrize("name", ["auto", "", "nobody", "east/other", "x" * 10_000, "large "])
def test_a_name_that_nobody_has_is_unknown_and_its_error_short(name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        names().resolve(name, {"messages": []})
    assert caught.value.status == 404
    assert caught.value.body()["error"]["code"] == "model_not_found"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("serve", "where"),
    [
        ({"names": {"best": {"use": ["east/nothing"]}}}, "serve.names.best.use"),
        ({"names": {"best": {"use": ["large"]}}}, "serve.names.best.use"),
        ({"names": {"auto": {"use": ["east/large"]}}}, "serve.auto"),
        ({"auto": {"fast": "nothing", "powerful": "large"}}, "serve.auto.fast"),
    ],
)
def test_names_that_lead_nowhere_are_found_at_the_start(serve: Any, where: str) -> None:
    with pytest.raises(Misconfigured, match=where):
        names(**serve)
