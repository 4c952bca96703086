"""The routes of the gateway: what is there, what is not, and whether it takes requests."""

from __future__ import annotations

import httpx
import pytest

from serve.gateway.app import VERSION, build_app
from serve.gateway.build import build_gateway
from serve.gateway.openapi import document
from serve.gateway.settings import GatewaySettings
from tests.serve.gateway_chat import chat, error
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/completions", "/v1/responses", "/v1/files", "/v1/models/", "/docs", "/redoc"],
)
def test_an_unknown_path_is_told_in_openais_form(http: httpx.Client, path: str) -> None:
    assert error(http.get(path))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/v1/embeddings", "POST"),
        ("DELETE", "/v1/models/simulated", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_another_method_is_told_in_openais_form(
    http: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = http.request(method, path)
    assert error(answer)[:2] == (405, "method_not_supported")
    assert answer.headers["allow"] == allowed


def test_options_and_head(http: httpx.Client) -> None:
    asked = http.options("/v1/chat/completions")
    assert (asked.status_code, asked.headers["allow"], asked.content) == (204, "POST", b"")
    head = http.head("/v1/models")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(http.get("/v1/models").content))


def test_it_says_that_it_runs_and_is_ready(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok", "version": VERSION}
    assert http.get("/readyz").json() == {"status": "ready"}


def test_it_takes_nobody_in_while_it_is_about_to_end(upstream: Upstream) -> None:
    with gateway_world({"main": upstream.url}) as world, httpx.Client(base_url=world.url) as http:
        world.gateway.drain()
        for answer in (http.get("/readyz"), chat(http)):
            assert error(answer)[:2] == (503, "gateway_draining")
            assert answer.headers["retry-after"] == "1"
        assert http.get("/healthz").status_code == 200


async def test_it_is_not_ready_before_it_has_started(upstream: Upstream) -> None:
    settings = GatewaySettings(providers={"main": provider_at(upstream.url)})
    app = build_app(build_gateway(settings))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200


def test_openapi_tells_every_route_and_no_other(http: httpx.Client, world: World) -> None:
    told = http.get("/openapi.json").json()
    assert told == document(VERSION, metrics=True)
    app = build_app(world.gateway)
    routes = {route.path for route in app.routes}  # type: ignore[attr-defined]
    paths = {path.replace("{model}", "{name:path}") for path in told["paths"]}
    assert routes - paths == {"/openapi.json"}
    assert paths - routes == set()


def test_what_it_measures_can_be_read_or_is_off(http: httpx.Client, upstream: Upstream) -> None:
    chat(http)
    chat(http, model="none")
    told = http.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    counted = told.text.splitlines()
    for status in ("200", "404"):
        [line] = [line for line in counted if f'chat/completions",status="{status}"' in line][:1]
        assert float(line.rpartition(" ")[2]) >= 1
    with gateway_world({"main": upstream.url}, {"metrics": False}) as world:
        assert error(httpx.get(f"{world.url}/metrics"))[0] == 404
        assert "/metrics" not in httpx.get(f"{world.url}/openapi.json").json()["paths"]
