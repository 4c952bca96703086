"""Models that share a process, by Ray Serve's own cache of models, without a cluster."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from serve.models.errors import ModelNotLoaded
from serve.models.pool import FAILED_SECONDS, Pool
from serve.models.settings import EmbedderSettings, ModelSettings, PoolSettings
from tests.serve.generation_world import FakeForward, server
from tests.serve.tiny_models import TinyServer

SETTINGS: dict[str, Any] = {
    "good": {"generator": "tiny"},
    "other": {"generator": "tiny"},
    "gone": {"embedder": "missing"},
}


@pytest.fixture(autouse=True)
def replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Ray Serve's cache wants of its process. It tells nobody what it holds."""
    context = SimpleNamespace(app_name="a", deployment="d", replica_id="r", replica_tag="r")
    monkeypatch.setattr("ray.serve.multiplex._get_internal_replica_context", lambda: context)
    monkeypatch.setattr("ray.serve.context._get_internal_replica_context", lambda: context)
    for name in ("Histogram", "Gauge", "Counter"):
        number = SimpleNamespace(set=_ignore, inc=_ignore, observe=_ignore)
        monkeypatch.setattr(
            f"ray.serve.multiplex.metrics.{name}", lambda *_, made=number, **__: made
        )
    pusher = SimpleNamespace(register_or_update_task=_ignore, start=_ignore)
    monkeypatch.setattr("ray.serve.multiplex.MetricsPusher", lambda: pusher)


def _ignore(*_: Any, **__: Any) -> None:
    pass


class World:
    """A pool, what was loaded for it, and its clock."""

    def __init__(self, loaded: int) -> None:
        self.loads: Counter[str] = Counter()
        self.now = 0.0
        settings = PoolSettings.model_validate({"pool": SETTINGS, "loaded": loaded})
        self.pool = Pool(settings, self._load, lambda: self.now)

    def _load(self, settings: ModelSettings) -> TinyServer:
        missing = isinstance(settings, EmbedderSettings)
        self.loads["gone" if missing else "tiny"] += 1
        return TinyServer(settings)

    async def ask(self, name: str) -> float | None:
        """None, or in how many seconds it may be asked for again where it is not loaded."""
        try:
            async with self.pool.use(name):
                return None
        except ModelNotLoaded as error:
            return error.retry_after


async def test_what_made_room_is_out_of_memory_when_the_next_is_loaded() -> None:
    found: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    def load(settings: ModelSettings) -> Any:
        alive.extend(each() is not None for each in found)
        forward = FakeForward()
        made = server(forward)
        found.extend([weakref.ref(made), weakref.ref(forward)])
        return made

    pool = Pool(PoolSettings.model_validate({"pool": SETTINGS, "loaded": 1}), load)
    async with pool.use("good"):
        pass
    async with pool.use("other"):
        assert alive == [False, False]
        assert list(pool.loaded()) == ["other"]
    await pool.aclose()
    assert pool.loaded() == {}


@pytest.mark.parametrize(("loaded", "reloads"), [(1, 2), (2, 1)])
async def test_one_that_cannot_be_loaded_is_tried_once_and_takes_nobodys_place(
    loaded: int, reloads: int
) -> None:
    world = World(loaded)
    await world.ask("good")
    waits = await asyncio.gather(*(world.ask("gone") for _ in range(20)))
    assert waits == [FAILED_SECONDS] * 20
    await world.ask("good")
    there = world.pool.loaded()["good"]
    world.now += 10
    assert [await world.ask("gone") for _ in range(20)] == [FAILED_SECONDS - 10] * 20
    assert world.loads == {"gone": 1, "tiny": reloads}
    assert world.pool.loaded() == {"good": there}
    world.now += FAILED_SECONDS
    await world.ask("gone")
    assert world.loads["gone"] == 2


async def test_all_who_wait_for_a_model_share_one_load_that_goes_on_without_them() -> None:
    begin, begun, loads = threading.Event(), asyncio.Event(), 0
    loop = asyncio.get_running_loop()

    def load(settings: ModelSettings) -> TinyServer:
        nonlocal loads
        loads += 1
        loop.call_soon_threadsafe(begun.set)
        begin.wait()
        return TinyServer(settings)

    pool = Pool(PoolSettings.model_validate({"pool": SETTINGS}), load)

    async def ask() -> None:
        async with pool.use("good"):
            pass

    waiting = [asyncio.create_task(ask()) for _ in range(20)]
    await begun.wait()
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    begin.set()
    await ask()
    assert loads == 1
