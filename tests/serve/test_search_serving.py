"""The search on Ray Serve: runs come and go, and what a tenant is told meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
import ray
from ray import serve as ray_serve

from serve.search.calls import APPLICATION, RaySearch
from serve.search.contract import Piece
from serve.search.deployment import application
from serve.search.errors import BadQuery, NoSuchReport, SearchDown
from serve.search.settings import SearchSettings
from tests.serve.search_world import leave_run, record

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]


@pytest.fixture
async def search(tmp_path: Path) -> AsyncIterator[RaySearch]:
    """The search over `tmp_path / "retro"`, of the tenant `a`, in a cluster of its own."""
    runs = [{"path": str(tmp_path / "retro"), "tenant": "a"}]
    settings = SearchSettings.model_validate({"runs": runs, "state": str(tmp_path / "index")})
    ray.init(
        address="local",
        namespace="fupan",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
    )
    try:
        ray_serve.start(http_options={"host": "127.0.0.1", "port": 0})
        ray_serve.run(application(settings, {}), name=APPLICATION, route_prefix=None)
        yield RaySearch()
    finally:
        ray_serve.shutdown()
        ray.shutdown()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return when it holds; asked again and again, in the end by the test's own time."""
    while not await holds():  # noqa: ASYNC110 - another process makes it hold
        await asyncio.sleep(0.2)


async def found(search: RaySearch, **body: Any) -> list[str]:
    hits = orjson.loads(await search.search("a", body, 60))["hits"]
    return [hit["id"] for hit in hits]


async def test_runs_come_and_go_and_a_replica_that_dies_is_replaced(
    search: RaySearch, tmp_path: Path
) -> None:
    assert await found(search, query="refund", mode="words") == []
    folder = leave_run(tmp_path / "retro" / "day", [record("r-1", "the refund is late")])

    async def is_found() -> bool:
        return await found(search, query="refund", mode="words") == ["r-1"]

    async def is_embedded() -> bool:
        searched = orjson.loads(await search.search("a", {"query": "x"}, 60))["searched"]
        return bool(searched["embedded"] == searched["texts"] == 1)

    await until(is_found)
    await until(is_embedded)
    assert await found(search, query="money that did not come back", mode="meaning") == ["r-1"]
    with pytest.raises(BadQuery):
        await search.search("a", {"query": "x", "limit": 0}, 60)
    (run,) = orjson.loads(await search.reports("a", 60))["data"]
    told = orjson.loads(await search.file("a", run["id"], "report.html", 60))
    assert told["headers"]["content-type"] == "text/html; charset=utf-8"
    whole = Piece(0, told["size"], told["state"])
    assert await search.piece("a", run["id"], "report.html", whole, 60) == b"page"
    with pytest.raises(NoSuchReport):
        await search.file("b", run["id"], "report.html", 60)
    with pytest.raises(NoSuchReport):
        await search.piece("b", run["id"], "report.html", whole, 60)

    replicas = [
        process
        for process in psutil.Process().children(recursive=True)
        if "fupan-search:Search" in " ".join(process.cmdline())
    ]
    assert replicas
    for process in replicas:
        process.kill()

    async def answers_again() -> bool:
        try:
            return await is_found()
        except SearchDown:
            return False

    await until(answers_again)
    shutil.rmtree(folder)

    async def is_gone() -> bool:
        return await found(search, query="refund", mode="words") == []

    await until(is_gone)
