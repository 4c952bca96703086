"""Pages in a browser of this machine, and a gateway without keys."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.gateway.browser import CODE, check_page
from serve.gateway.errors import Forbidden
from serve.gateway.keys import digest_of, new_key
from tests.serve.gateway_world import gateway_world
from tests.serve.scripted_upstream import upstream_world

ASKED = b'{"model": "simulated", "messages": [{"role": "user", "content": "Hello"}]}'


def may_ask(own: str = "127.0.0.1", **headers: str) -> bool:
    try:
        check_page(headers, own)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "127.0.0.1:8000"},
        {"host": "localhost:8000"},
        {"host": "[::1]:8000"},
        {"host": "192.0.2.7:8000"},
        {"host": "Gateway.example", "own": "gateway.example"},
        {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"},
        {"host": "127.0.0.1:8000", "origin": "http://localhost:3000"},
        {"host": "192.0.2.7:8000", "origin": "http://192.0.2.7:8000"},
    ],
)
def test_what_is_no_page_or_one_of_this_machine_may_ask(headers: dict[str, str]) -> None:
    assert may_ask(**headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8000", "origin": "https://evil.example"},
        {"host": "127.0.0.1:8000", "origin": "null"},
        {"host": "127.0.0.1:8000", "origin": "http://192.0.2.7:8000"},
        {"host": "127.0.0.1:8000", "origin": "http://localhost.evil.example"},
        {"host": "127.0.0.1:8000", "origin": ""},
        {"host": "rebound.evil.example:8000"},
        {"host": "rebound.evil.example:8000", "origin": "http://rebound.evil.example:8000"},
        {"host": "[::1", "origin": "http://[::1"},
        {"origin": "https://evil.example"},
    ],
)
def test_pages_from_elsewhere_may_not(headers: dict[str, str]) -> None:
    assert not may_ask(**headers)


@given(st.text(), st.text())
def test_any_header_is_looked_at_without_another_error(host: str, origin: str) -> None:
    may_ask(host=host, origin=origin)


def test_a_page_cannot_spend_money_at_a_gateway_without_keys() -> None:
    simple = {"content-type": "text/plain", "origin": "https://evil.example"}
    with upstream_world() as provider, gateway_world({"main": provider.url}) as world:
        url = f"{world.base_url}/chat/completions"
        refused = httpx.post(url, content=ASKED, headers=simple)
        rebound = httpx.get(f"{world.base_url}/models", headers={"host": "evil.example"})
        assert provider.calls == 0
        answered = httpx.post(url, content=ASKED)
    for each in (refused, rebound):
        assert (each.status_code, each.json()["error"]["code"]) == (403, CODE)
    assert answered.status_code == 200


def test_where_keys_are_set_up_they_alone_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key()
    record = f"[{{name: a, tenant: a, sha256: {digest_of(key)}}}]"
    monkeypatch.setenv("PAGES_KEYS", record)
    headers = {
        "authorization": f"Bearer {key}",
        "origin": "https://app.example",
        "host": "b.example",
    }
    with (
        upstream_world() as provider,
        gateway_world({"main": provider.url}, {"keys_env": "PAGES_KEYS"}) as world,
    ):
        url = f"{world.base_url}/chat/completions"
        assert httpx.post(url, content=ASKED, headers=headers).status_code == 200
