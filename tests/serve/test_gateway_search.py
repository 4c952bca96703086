"""The search and the reports behind the gateway's keys, admission and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from pydantic import ValidationError

from serve.ask.errors import Misconfigured
from serve.gateway.build import build_gateway
from serve.gateway.gateway import Gateway
from serve.gateway.keys import digest_of, new_key
from serve.gateway.settings import GatewaySettings
from serve.search.contract import Piece, Search
from serve.search.errors import SearchDown
from serve.search.indexer import Indexer
from serve.search.server import SearchServer
from serve.search.settings import RunsSettings
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.search_world import WordVectors, leave_run, record
from tests.serve.test_metrics import parsed, value

KEYS = {name: new_key() for name in ("a", "b", "narrow", "slow")}
NOWHERE = {"main": "http://127.0.0.1:9/v1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two tenants."""
    root = tmp_path_factory.mktemp("runs")
    for tenant in ("a", "b"):
        leave_run(root / tenant / "day", [record(f"r-{tenant}", "a late refund")], page="<b>page")
    return root


def indexed(folder: Path, state: Path, **tenants: str | None) -> SearchServer:
    """The search over the folders of some tenants, which has taken all in."""
    runs = [RunsSettings(path=str(folder / name), tenant=of) for name, of in tenants.items()]
    indexer = Indexer(runs, state, WordVectors())
    indexer.look()

    async def embed() -> None:
        while await indexer.embed(10):
            pass

    asyncio.run(embed())
    server = SearchServer(state, WordVectors())
    asyncio.run(server.refresh())
    return server


def with_search(search: Search, **section: Any) -> Any:
    """Builds a gateway with a search."""

    def build(settings: GatewaySettings) -> Gateway:
        given = {"runs": [{"path": "/nowhere", "tenant": "*"}], **section}
        made = GatewaySettings.model_validate({**settings.model_dump(), "search": given})
        return build_gateway(made, search=search)

    return build


@pytest.fixture(scope="module")
def world(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """With keys of two tenants."""
    rights: dict[str, dict[str, Any]] = {
        "narrow": {"tenant": "a", "models": ["simulated"]},
        "slow": {"tenant": "a", "rpm": 1},
    }
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    lines = [
        {"name": name, "tenant": name, "sha256": digest_of(key), **rights.get(name, {})}
        for name, key in KEYS.items()
    ]
    keys.write_bytes(orjson.dumps(lines))
    server = indexed(folder, tmp_path_factory.mktemp("index"), a="a", b="b")
    with gateway_world(NOWHERE, {"keys": str(keys)}, with_search(server)) as made:
        yield made


def asked(world: World, key: str, **body: Any) -> httpx.Response:
    return httpx.post(
        f"{world.base_url}/search",
        json={"query": "refund", **body},
        headers={"authorization": f"Bearer {KEYS.get(key, key)}"},
    )


def got(world: World, path: str, key: str) -> httpx.Response:
    return httpx.get(f"{world.url}{path}", headers={"authorization": f"Bearer {KEYS[key]}"})


def test_each_tenant_finds_its_own(world: World) -> None:
    for tenant in ("a", "b"):
        answer = asked(world, tenant)
        assert answer.status_code == 200
        assert answer.headers["x-request-id"]
        assert [hit["id"] for hit in answer.json()["hits"]] == [f"r-{tenant}"]


def test_reports_are_listed_and_sent_to_their_tenant_alone(world: World) -> None:
    (run,) = got(world, "/v1/reports", "a").json()["data"]
    page = got(world, run["report"], "a")
    assert (page.status_code, page.text) == (200, "<b>page")
    assert page.headers["content-security-policy"].endswith("sandbox")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert got(world, f"{run['report']}/report.json", "a").json()["headline"]
    refused = got(world, run["report"], "b")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "report_not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/reports/../reports/../b/day",
        "/v1/reports/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/v1/reports/RUN/..%2f..%2fb%2fday%2freport.html",
        "/v1/reports/RUN/%2e%2e/%2e%2e/etc/passwd",
        "/v1/reports/RUN/run.json",
        "/v1/reports/RUN/results/part-00000.parquet",
        "/v1/reports/RUN/report.html%00.md",
        "/v1/reports//etc/passwd",
    ],
)
def test_no_path_leads_out_of_a_run(world: World, path: str) -> None:
    (run,) = got(world, "/v1/reports", "a").json()["data"]
    # By hand, since a client would tidy the path up.
    target = httpx.URL(world.url).copy_with(raw_path=path.replace("RUN", run["id"]).encode())
    refused = httpx.get(target, headers={"authorization": f"Bearer {KEYS['a']}"})
    assert refused.status_code == 404
    assert refused.json()["error"]["code"] in ("report_not_found", "unknown_url")


def test_a_report_is_had_by_the_name_of_its_run_unless_several_have_it(
    world: World, folder: Path, tmp_path: Path
) -> None:
    assert got(world, "/v1/reports/day", "a").text == "<b>page"
    assert got(world, "/v1/reports/day/report.json", "b").json()["headline"]
    server = indexed(folder, tmp_path, a=None, b=None)
    with gateway_world(NOWHERE, build=with_search(server)) as open_world:
        refused = httpx.get(f"{open_world.base_url}/reports/day")
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (400, "report_ambiguous")
        assert error["param"] == "run"
        for run in httpx.get(f"{open_world.base_url}/reports").json()["data"]:
            assert run["id"] in error["message"]
            assert httpx.get(f"{open_world.url}{run['report']}").status_code == 200


def test_searches_and_reports_are_measured_as_all_else_is(folder: Path, tmp_path: Path) -> None:
    server = indexed(folder, tmp_path, a=None)
    with gateway_world(NOWHERE, build=with_search(server)) as world:
        asked_for = {"/search": {"query": "refund"}, "/analyze": {"text": 7}}
        for path, body in asked_for.items():
            httpx.post(f"{world.base_url}{path}", json=body)
        httpx.post(f"{world.base_url}/search", json={"query": ""})
        for path in ("/reports", "/reports/day", "/reports/day/report.json", "/reports/none"):
            httpx.get(f"{world.base_url}{path}")
        found = parsed(httpx.get(f"{world.url}/metrics").content)
    for endpoint, counts in {
        "search": {"200": 1, "400": 1},
        "reports": {"200": 3, "404": 1},
    }.items():
        for status, count in counts.items():
            about = {"endpoint": endpoint, "status": status}
            assert value(found, "fupan_requests_total", **about) == count
        every = sum(counts.values())
        assert value(found, "fupan_request_seconds_count", endpoint=endpoint) == every
        for name in ("gateway", "queue", "serialise"):
            name = f"fupan_{name}_seconds"
            assert value(found, f"{name}_count", endpoint=endpoint) == counts["200"]
        gateway = value(found, "fupan_gateway_seconds_sum", endpoint=endpoint)
        assert 0 < gateway < value(found, "fupan_request_seconds_sum", endpoint=endpoint)
    tenant = {
        status: value(found, "fupan_tenant_requests_total", tenant="", status=status)
        for status in ("200", "400", "404")
    }
    assert tenant == {"200": 4, "400": 2, "404": 1}


def test_who_may_not_ask_is_told_so(world: World) -> None:
    assert asked(world, "fp-nobody").status_code == 401
    refused = asked(world, "narrow")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "search_not_allowed")
    assert got(world, "/v1/reports", "narrow").status_code == 403


def test_a_search_is_one_request_of_its_key(world: World) -> None:
    assert asked(world, "slow").status_code == 200
    refused = asked(world, "slow")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "key_rate_limited")


def test_a_query_that_makes_no_sense_is_a_bad_request(world: World) -> None:
    refused = asked(world, "a", kind="poem")
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (400, "kind", "invalid_query")
    assert asked(world, "a", query=" ").status_code == 400
    listed = httpx.post(
        f"{world.base_url}/search", content=b"[1]", headers={"authorization": f"Bearer {KEYS['a']}"}
    )
    assert listed.status_code == 400


class Away:
    """A search whose replicas are gone."""

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        raise SearchDown("gone")

    async def reports(self, tenant: str, seconds: float) -> bytes:
        raise SearchDown("gone")

    async def file(self, tenant: str, run: str, name: str, seconds: float) -> bytes:
        raise SearchDown("gone")

    async def piece(self, tenant: str, run: str, name: str, piece: Piece, seconds: float) -> bytes:
        raise SearchDown("gone")


def test_a_search_that_is_away_is_503_and_everything_else_goes_on() -> None:
    with gateway_world(NOWHERE, build=with_search(Away())) as world:
        for answer in (
            httpx.post(f"{world.base_url}/search", json={"query": "x"}),
            httpx.get(f"{world.base_url}/reports"),
            httpx.get(f"{world.base_url}/reports/run"),
        ):
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "search_unavailable"
            assert int(answer.headers["retry-after"]) >= 1
        assert httpx.get(f"{world.url}/readyz").status_code == 200
        assert httpx.get(f"{world.base_url}/models").status_code == 200


def test_without_the_section_there_is_no_search() -> None:
    with gateway_world(NOWHERE) as world:
        refused = httpx.post(f"{world.base_url}/search", json={"query": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_url")
        assert "/v1/search" not in httpx.get(f"{world.url}/openapi.json").json()["paths"]


def test_without_keys_runs_of_tenants_are_nobodys(folder: Path, tmp_path: Path) -> None:
    server = indexed(folder, tmp_path, a="a", b=None)
    with gateway_world(NOWHERE, build=with_search(server)) as world:
        answer = httpx.post(f"{world.base_url}/search", json={"query": "refund"})
        assert [hit["id"] for hit in answer.json()["hits"]] == ["r-b"]
        foreign = httpx.get(f"{world.base_url}/reports", headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403


def test_with_keys_every_folder_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEYS", "[]")
    settings = {
        "providers": {"main": provider_at("http://127.0.0.1:9/v1")},
        "serve": {"keys_env": "THE_KEYS", "state": str(tmp_path)},
        "search": {"runs": [{"path": "/retro"}]},
    }
    with pytest.raises(Misconfigured, match=r"search\.runs\[0\].*tenant"):
        build_gateway(GatewaySettings.model_validate(settings), search=Away())


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"runs": []},
        {"runs": [{"path": "x", "tenants": "a"}]},
        {"runs": [{"path": "x", "tenant": "a/b"}]},
        {"runs": [{"path": "x"}], "embedder": "none-such"},
        {"runs": [{"path": "x"}], "index": "y"},
    ],
)
def test_a_section_that_makes_no_sense_is_an_error(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GatewaySettings.model_validate(
            {"providers": {"main": provider_at("http://127.0.0.1:9/v1")}, "search": section}
        )
