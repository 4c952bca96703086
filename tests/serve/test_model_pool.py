"""Models that share a process, by Ray Serve's own cache of models, without a cluster."""

from __future__ import annotations

import asyncio
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from serve.models.errors import ModelNotLoaded
from serve.models.load import Loader
from serve.models.pool import FAILED_SECONDS, MOST_FAILED_SECONDS, Pool
from serve.models.settings import EmbedderSettings, GeneratorSettings, ModelSettings, PoolSettings
from tests.serve.generation_world import FakeForward, server, until
from tests.serve.tiny_models import TinyServer, fault

SETTINGS: dict[str, Any] = {
    "good": {"generator": "good"},
    "other": {"generator": "other"},
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
    """A pool, what was loaded for it, in order, and its clock. `wrong`: what the files of the model
    that cannot be loaded tell; `go_on`: it fails then."""

    def __init__(self, loaded: int) -> None:
        self.loads: list[str] = []
        self.now = 0.0
        self.wrong = ""
        self.looks = 0
        self.go_on = threading.Event()
        self.go_on.set()
        settings = PoolSettings.model_validate({"pool": SETTINGS, "loaded": loaded})
        self.pool = Pool(settings, Loader(self._fault, self._load), lambda: self.now)

    def _fault(self, settings: ModelSettings) -> str:
        self.looks += isinstance(settings, EmbedderSettings)
        return self.wrong if isinstance(settings, EmbedderSettings) else ""

    def _load(self, settings: ModelSettings) -> TinyServer:
        if isinstance(settings, GeneratorSettings):
            self.loads.append(settings.generator)
        else:
            self.loads.append("gone")
            self.go_on.wait()
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

    settings = PoolSettings.model_validate({"pool": SETTINGS, "loaded": 1})
    pool = Pool(settings, Loader(fault, load))
    async with pool.use("good"):
        pass
    async with pool.use("other"):
        assert alive == [False, False]
        assert list(pool.loaded()) == ["other"]
    await pool.aclose()
    assert pool.loaded() == {}


async def test_nothing_makes_room_for_one_whose_files_tell_that_it_cannot_be_loaded() -> None:
    world = World(1)
    world.wrong = "there is no such folder"
    await world.ask("good")
    there = world.pool.loaded()["good"]
    for looks in range(1, 6):
        waits = await asyncio.gather(*(world.ask("gone") for _ in range(20)))
        assert waits == [FAILED_SECONDS] * 20
        world.now += 10
        assert await world.ask("gone") == FAILED_SECONDS - 10
        assert world.looks == looks
        world.now += FAILED_SECONDS
    assert world.loads == ["good"]
    assert world.pool.loaded() == {"good": there}


async def test_what_made_room_in_vain_is_loaded_again_unasked() -> None:
    world = World(1)
    await world.ask("good")
    waits = await asyncio.gather(*(world.ask("gone") for _ in range(20)))
    assert waits == [FAILED_SECONDS] * 20
    await until(lambda: "good" in world.pool.loaded())
    assert world.loads == ["good", "gone", "good"]


async def test_one_that_fails_again_and_again_takes_a_place_ever_more_rarely() -> None:
    world = World(1)
    waits = []
    for _ in range(9):
        await world.ask("good")
        waits.append(await world.ask("gone"))
        await until(lambda: "good" in world.pool.loaded())
        world.now += waits[-1] or 0
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert waits[0] == FAILED_SECONDS
    assert waits[-1] == MOST_FAILED_SECONDS


async def test_where_there_is_room_it_is_tried_each_minute_and_takes_nobodys_place() -> None:
    world = World(2)
    await world.ask("good")
    for _ in range(5):
        assert await world.ask("gone") == FAILED_SECONDS
        world.now += FAILED_SECONDS
    assert world.loads == ["good", *["gone"] * 5]
    assert list(world.pool.loaded()) == ["good"]


async def test_what_cannot_be_closed_makes_room_all_the_same() -> None:
    world = World(1)
    await world.ask("good")
    world.pool.loaded()["good"].aclose = _breaks  # type: ignore[method-assign]
    assert await world.ask("other") is None
    assert list(world.pool.loaded()) == ["other"]


async def _breaks() -> None:
    raise RuntimeError("it does not end")


async def test_who_waits_for_a_model_goes_before_what_made_room_in_vain() -> None:
    world = World(1)
    await world.ask("good")
    world.go_on.clear()
    asked = asyncio.create_task(world.ask("gone"))
    await until(lambda: world.loads[-1] == "gone")
    other = asyncio.create_task(world.ask("other"))
    await asyncio.sleep(0)
    world.go_on.set()
    assert await asked == FAILED_SECONDS
    assert await other is None
    assert await world.ask("other") is None
    assert world.loads == ["good", "gone", "other"]


async def test_all_who_wait_for_a_model_share_one_load_that_goes_on_without_them() -> None:
    begin, begun, loads = threading.Event(), asyncio.Event(), 0
    loop = asyncio.get_running_loop()

    def load(settings: ModelSettings) -> TinyServer:
        nonlocal loads
        loads += 1
        loop.call_soon_threadsafe(begun.set)
        begin.wait()
        return TinyServer(settings)

    pool = Pool(PoolSettings.model_validate({"pool": SETTINGS}), Loader(fault, load))

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
