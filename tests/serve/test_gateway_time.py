"""Where a request's time and a key's money go before a provider is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import orjson
import pytest

from serve.ask.limiter_host import InProcessPermits
from serve.ask.settings import Provider
from serve.gateway.build import build_gateway
from serve.gateway.gateway import Gateway
from serve.gateway.keys import digest_of
from serve.gateway.settings import GatewaySettings
from tests.serve.fault_world import CHAT, error, setting
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import silence, upstream_world

WHO = ("web", "other")
_BODY = {**CHAT, "model": "small", "max_tokens": 1000}
"""Costs little more than 0.01 CNY at most."""
_WEB = {"authorization": "Bearer fp-web"}


def test_a_body_that_takes_the_whole_time_is_the_clients_own_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with setting(timeout=600) as here:
        body = orjson.dumps(CHAT)
        connection = HTTPConnection(here.world.url.removeprefix("http://"), timeout=60)
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("content-length", str(len(body)))
        clock = here.world.gateway.clock
        looked: list[float] = []

        def later() -> float:
            """From the second look on."""
            looked.append(clock())
            return looked[-1] + 600 * (len(looked) > 1)

        monkeypatch.setattr(here.world.gateway, "clock", later)
        connection.endheaders(body)
        answer = connection.getresponse()
        assert answer.status == 400
        assert orjson.loads(answer.read())["error"]["code"] == "body_timeout"
        assert here.upstream.calls == 0


def test_a_turn_is_not_waited_for_longer_than_leaves_time_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with setting(timeout=600, admission={"in_flight": 1}) as here:
        monkeypatch.setattr(here.world.gateway._upstream, "needed", lambda _: 599.9)
        here.upstream.planned.append(silence)
        with closing(_asking(here.world, CHAT)):
            here.upstream.wait_arrived()
            assert error(here.post()) == (503, "gateway_overloaded")
        assert here.upstream.calls == 1


def test_a_meter_that_does_not_answer_is_not_waited_for_longer_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys.yaml"
    web = {"name": "web", "tenant": "web", "sha256": digest_of("fp-web"), "rpm": 60}
    keys.write_bytes(orjson.dumps([web]))

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    with setting(timeout=600, keys=str(keys)) as here:
        monkeypatch.setattr(here.world.gateway._upstream, "needed", lambda _: 599.0)
        monkeypatch.setattr(here.world.gateway._meter, "begin", hang)
        answer = here.http.post("/chat/completions", json=CHAT, headers=_WEB)
        assert error(answer) == (503, "gateway_overloaded")
        assert here.upstream.calls == 0


@pytest.mark.parametrize(("sent", "status"), [(False, 200), (True, 429)])
def test_a_key_pays_for_one_who_left_only_if_it_was_sent(
    tmp_path: Path, sent: bool, status: int
) -> None:
    permits: list[InProcessPermits] = []

    def permits_of(provider: Provider) -> InProcessPermits:
        permits.append(InProcessPermits(provider.limits.to_limits()))
        return permits[-1]

    def build(settings: GatewaySettings) -> Gateway:
        return build_gateway(settings, permits=permits_of)

    keys = tmp_path / "keys.yaml"
    money = {"max_spend": "0.015", "currency": "CNY"}
    web, other = ({"name": name, "tenant": name, "sha256": digest_of(f"fp-{name}")} for name in WHO)
    keys.write_bytes(orjson.dumps([{**web, **money}, other]))
    prices = {"currency": "CNY", "input": 2, "output": 10}
    with upstream_world() as upstream:
        provider = provider_at(
            upstream.url, models=["small"], prices=prices, limits={"max_concurrency": 1}
        )
        with gateway_world({"main": provider}, {"keys": str(keys)}, build) as world:

            def waiting(many: int) -> bool:
                return world.run(permits[0].stats()).waiting["online"] == many

            upstream.planned.append(silence)
            with closing(_asking(world, _BODY, "web" if sent else "other")):
                upstream.wait_arrived()
                if not sent:
                    with closing(_asking(world, _BODY, "web")):
                        _until(lambda: waiting(1))
                    _until(lambda: waiting(0))
            _until(lambda: world.gateway.admission.in_flight == 0)
            answer = httpx.post(f"{world.base_url}/chat/completions", json=_BODY, headers=_WEB)
    assert answer.status_code == status


def _asking(world: World, body: object, name: str = "nobody") -> HTTPConnection:
    """A client that has asked and does not wait for the answer."""
    connection = HTTPConnection(world.url.removeprefix("http://"), timeout=60)
    headers = {"authorization": f"Bearer fp-{name}"}
    connection.request("POST", "/v1/chat/completions", orjson.dumps(body), headers)
    return connection


def _until(holds: Callable[[], bool]) -> None:
    """Wait for what no event tells of."""
    for _ in range(30_000):
        if holds():
            return
        threading.Event().wait(0.002)
    raise AssertionError("it did not come to that")
