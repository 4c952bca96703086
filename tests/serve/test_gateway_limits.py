"""What clients see of their keys: who may ask, for what, how often and for how much."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from serve.gateway.keys import digest_of
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    completion,
    refused,
    silence,
)

PRICES = {"currency": "CNY", "input": 2, "output": 10}
"""A plain answer has 5 tokens in and 3 out: 0.00004 CNY. A request of `chat` has 98 bytes and costs
at most 0.0003."""
CHAT = {
    "model": "small",
    "messages": [{"role": "user", "content": "Say it."}],
    "max_tokens": 10,
    "temperature": 0,
}
MONEY = {"max_spend": "0.00035", "currency": "CNY"}


def line(name: str, **limits: Any) -> str:
    record = {"name": name, "tenant": name, "sha256": digest_of(f"fp-{name}"), **limits}
    return f"- {orjson.dumps(record).decode()}\n"


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    keys = tmp_path_factory.mktemp("keys") / "keys.yaml"
    keys.write_text(
        line("free")
        + line("once", rpm=1)
        + line("cached", rpm=1)
        + line("joined", rpm=1)
        + line("repeated", rpm=1)
        + line("failing", **MONEY)
        + line("tokens", tpm=30)
        + line("spending", **MONEY)
        + line("dollars", max_spend=1, currency="USD")
        + line("narrow", models=["main/small"])
    )
    providers = {"main": provider_at(upstream.url, models=["small", "large"], prices=PRICES)}
    with gateway_world(providers, {"keys": str(keys)}) as world:
        yield world


def chat(
    http: httpx.Client, name: str | None, headers: dict[str, str] | None = None, **body: Any
) -> httpx.Response:
    key = {} if name is None else {"authorization": f"Bearer fp-{name}"}
    return http.post(
        "/v1/chat/completions", json={**CHAT, **body}, headers={**key, **(headers or {})}
    )


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("name", [None, "nobody", ""])
def test_a_wrong_key_is_told_so_and_nothing_is_asked(
    http: httpx.Client, upstream: Upstream, name: str | None
) -> None:
    answer = chat(http, name)
    assert code(answer) == (401, "invalid_api_key")
    assert "fp-" not in answer.text
    assert http.get("/v1/models").status_code == 401
    assert http.get("/healthz").status_code == 200
    assert upstream.calls == 0


def test_a_key_may_ask_only_for_its_models(http: httpx.Client, upstream: Upstream) -> None:
    assert chat(http, "narrow").status_code == 200
    assert chat(http, "narrow", model="main/small").status_code == 200
    for name in ("large", "main/large"):
        assert code(chat(http, "narrow", model=name)) == (403, "model_not_allowed")
    assert upstream.calls == 2
    listed = http.get("/v1/models", headers={"authorization": "Bearer fp-narrow"}).json()["data"]
    assert [entry["id"] for entry in listed] == ["main/small", "small"]


def test_a_rate_that_is_used_up_is_told_with_the_time_to_wait(
    http: httpx.Client, upstream: Upstream
) -> None:
    assert chat(http, "once").status_code == 200
    answer = chat(http, "once")
    assert code(answer) == (429, "key_rate_limited")
    assert 50 <= int(answer.headers["retry-after"]) <= 60
    assert upstream.calls == 1


def test_tokens_are_counted_as_the_provider_counts_them(http: httpx.Client) -> None:
    # At most about 22 tokens each, 8 in the end: the third is over 30.
    assert [chat(http, "tokens").status_code for _ in range(3)] == [200, 200, 429]


def test_a_spent_key_is_told_so_until_the_month_ends(
    http: httpx.Client, upstream: Upstream
) -> None:
    assert chat(http, "spending").headers["x-fupan-cost"] == "0.00004 CNY"
    assert chat(http, "spending").status_code == 200
    answer = chat(http, "spending")
    assert code(answer) == (429, "key_spent")
    assert "0.00027 of it is left" in answer.json()["error"]["message"]
    assert int(answer.headers["retry-after"]) <= 31 * 86_400
    assert upstream.calls == 2
    # One that asks for less still fits.
    assert chat(http, "spending", max_tokens=5).status_code == 200


@pytest.mark.parametrize(
    "field",
    [
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "1"}}]}]},
        {"prediction": {"type": "content", "content": "1" * 60}},
    ],
    ids=["file", "prediction"],
)
def test_requests_at_once_cannot_spend_more_than_the_key_has(
    upstream: Upstream, tmp_path: Path, field: dict[str, Any]
) -> None:
    keys = tmp_path / "keys.yaml"
    keys.write_text(line("web", max_spend="0.0004", currency="CNY"))
    # An answer to it costs all of the money: 190 tokens in and 2 out.
    dear = {**completion(), "usage": {"prompt_tokens": 190, "completion_tokens": 2}}
    providers = {
        "main": provider_at(upstream.url, models=["small"], prices=PRICES, context=195),
    }
    upstream.begin_anew()
    upstream.bodies.clear()
    upstream.planned.extend([answered(dear)] * 4)
    with (
        gateway_world(providers, {"keys": str(keys)}) as world,
        httpx.Client(base_url=world.url) as http,
        ThreadPoolExecutor(4) as pool,
    ):
        came = list(pool.map(lambda _: chat(http, "web", max_tokens=1, **field), range(4)))
    assert sorted(answer.status_code for answer in came) == [200, 429, 429, 429]
    assert upstream.calls == 1


def test_money_in_another_currency_than_the_prices_buys_nothing(http: httpx.Client) -> None:
    assert code(chat(http, "dollars")) == (403, "price_unknown")


def test_what_fails_or_is_refused_costs_nothing(http: httpx.Client, upstream: Upstream) -> None:
    for _ in range(10):
        upstream.planned.append(refused(400, "no", code="bad"))
        assert chat(http, "failing").status_code == 400
    for _ in range(10):
        assert chat(http, "failing", max_tokens=1_000).status_code == 429
    assert chat(http, "failing").status_code == 200
    assert chat(http, "failing").status_code == 200
    assert code(chat(http, "failing")) == (429, "key_spent")


def test_a_cached_answer_counts_for_nothing(http: httpx.Client, upstream: Upstream) -> None:
    for _ in range(3):
        answer = chat(http, "cached", {"x-fupan-cache": "exact"})
        assert answer.status_code == 200
    assert answer.headers["x-fupan-cache"] == "exact"
    assert upstream.calls == 1
    assert code(chat(http, "cached")) == (429, "key_rate_limited")


def test_a_repeated_request_counts_once(http: httpx.Client, upstream: Upstream) -> None:
    for _ in range(3):
        assert chat(http, "repeated", {"idempotency-key": "k1"}).status_code == 200
    assert upstream.calls == 1
    assert code(chat(http, "repeated", {"idempotency-key": "k2"})) == (429, "key_rate_limited")


def test_equal_requests_at_once_count_once(http: httpx.Client, upstream: Upstream) -> None:
    with ThreadPoolExecutor(8) as pool:
        came = list(pool.map(lambda _: chat(http, "joined", {"x-fupan-cache": "exact"}), range(8)))
    assert [answer.status_code for answer in came] == [200] * 8
    assert upstream.calls == 1


def test_one_who_leaves_before_a_provider_is_asked_pays_nothing(
    upstream: Upstream, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.yaml"
    keys.write_text(line("web", **MONEY) + line("other"))
    providers = {"main": provider_at(upstream.url, models=["small"], prices=PRICES)}
    serve = {"keys": str(keys), "admission": {"in_flight": 1}}
    upstream.begin_anew()
    upstream.planned.append(silence)
    with (
        gateway_world(providers, serve) as world,
        httpx.Client(base_url=world.url) as http,
        closing(_asking(world, "other")) as other,
    ):
        upstream.wait_arrived()
        with closing(_asking(world, "web")):
            _until(lambda: world.gateway.admission.waiting == 1)
        _until(lambda: world.gateway.admission.waiting == 0)
        other.close()
        assert chat(http, "web").status_code == 200


def _asking(world: World, name: str) -> HTTPConnection:
    """A client that has asked and does not wait for the answer."""
    connection = HTTPConnection(world.url.removeprefix("http://"), timeout=60)
    body = orjson.dumps({**CHAT, "model": "small"})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer fp-{name}"})
    return connection


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("it did not come to that")


def test_a_revoked_key_ends_without_a_restart(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.gateway.keys.LOOK_SECONDS", 0.0)
    keys = tmp_path / "keys.yaml"
    keys.write_text(line("web") + line("other"))
    with (
        gateway_world(
            {"main": provider_at(upstream.url, models=["small"])}, {"keys": str(keys)}
        ) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        assert chat(http, "web").status_code == 200
        keys.write_text(line("other"))
        assert code(chat(http, "web")) == (401, "invalid_api_key")
        assert chat(http, "other").status_code == 200
        assert "fupan_keys_file_unusable 0" in http.get("/metrics").text
        keys.write_text("- {")
        assert "fupan_keys_file_unusable 1" in http.get("/metrics").text
        assert chat(http, "other").status_code == 200


def test_what_was_spent_is_spent_after_a_restart(upstream: Upstream, tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    keys.write_text(line("web", **MONEY))
    providers = {"main": provider_at(upstream.url, models=["small"], prices=PRICES)}
    serve = {"keys": str(keys), "state": str(tmp_path / "state")}
    statuses: list[int] = []
    for requests in (2, 1):
        with (
            gateway_world(providers, serve) as world,
            httpx.Client(base_url=world.url) as http,
        ):
            statuses += [chat(http, "web").status_code for _ in range(requests)]
    assert statuses == [200, 200, 429]
