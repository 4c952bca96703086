"""An end to the wait for models that cannot answer, in simulated seconds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ray.serve.schema import ApplicationStatus

from serve.models import deployed
from serve.models.calls import APPLICATION, RayCalls
from serve.models.deployed import Deployed, Seen
from serve.models.errors import ModelNotLoaded
from tests.serve.virtual_loop import run_virtually, virtually

MODEL = APPLICATION.format("m")
OTHER = APPLICATION.format("other")


class World:
    """A cluster with two models, one of which may fail, and how often it was looked at."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {MODEL: "", OTHER: ""}
        self.away = False
        self.looks = 0
        self.deployed = Deployed(self._look)

    async def _look(self) -> Seen:
        self.looks += 1
        await asyncio.sleep(0.01)
        if self.away:
            raise ModelNotLoaded("nobody says")
        return dict(self.seen)

    async def wait(self, application: str = MODEL, seconds: float = 100) -> float | str:
        """After how long it was answered, or why it was not."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with self.deployed.first(application):
                await asyncio.sleep(seconds)
        except ModelNotLoaded as error:
            return f"{error} ({loop.time() - began:.0f} s)"
        return loop.time() - began


@virtually
async def test_who_waits_for_a_model_that_fails_to_start_is_told() -> None:
    world = World()
    waiting = [asyncio.create_task(world.wait()) for _ in range(50)]
    other = asyncio.create_task(world.wait(OTHER))
    await asyncio.sleep(19.5)
    assert world.looks <= 20
    world.seen[MODEL] = "it failed"
    assert set(await asyncio.gather(*waiting)) == {"it failed (20 s)"}
    assert await other == 100


@virtually
async def test_who_waits_for_a_model_that_is_deleted_is_told() -> None:
    world = World()
    waiting = asyncio.create_task(world.wait())
    await asyncio.sleep(5)
    world.away = True
    del world.seen[MODEL]
    await asyncio.sleep(5)
    assert not waiting.done()
    world.away = False
    assert "there is no application fupan-model-m" in str(await waiting)


@virtually
async def test_what_is_answered_at_once_asks_nobody_and_no_watch_outlasts_the_wait() -> None:
    world = World()
    for _ in range(20):
        assert await world.wait(seconds=0.5) == 0.5
    assert world.looks == 0
    await world.wait(seconds=3)
    looks = world.looks
    await asyncio.sleep(60)
    assert world.looks <= looks + 1


@virtually
async def test_a_failing_model_is_looked_at_once_a_second_however_many_ask() -> None:
    world = World()
    world.seen[MODEL] = "it failed"

    async def check() -> bool:
        with pytest.raises(ModelNotLoaded, match="it failed"):
            await world.deployed.check(MODEL)
        return True

    for _ in range(5):
        assert all(await asyncio.gather(*(check() for _ in range(20))))
        await asyncio.sleep(0.3)
    assert world.looks == 2
    world.seen[MODEL] = ""
    await asyncio.sleep(1)
    await world.deployed.check(MODEL)


@virtually
async def test_a_timeout_of_the_callers_own_stays_one() -> None:
    world = World()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(7):
            await world.wait()


@pytest.mark.parametrize(
    ("status", "running", "fine"),
    [
        (ApplicationStatus.DEPLOY_FAILED, 0, False),
        # The replicas from before an update that failed.
        (ApplicationStatus.DEPLOY_FAILED, 1, True),
        (ApplicationStatus.DEPLOYING, 0, True),
        (ApplicationStatus.UNHEALTHY, 0, True),
        (ApplicationStatus.RUNNING, 1, True),
    ],
)
async def test_what_can_answer_is_asked(
    monkeypatch: pytest.MonkeyPatch, status: ApplicationStatus, running: int, fine: bool
) -> None:
    deployments = {"Model": SimpleNamespace(replica_states={"RUNNING": running})}
    found = SimpleNamespace(status=status, deployments=deployments)
    monkeypatch.setattr("ray.serve.status", lambda: SimpleNamespace(applications={MODEL: found}))
    assert (not (await deployed.look())[MODEL]) == fine


class Handle:
    """A deployment's, as Ray Serve gives one. What it is asked is never answered."""

    def __init__(self) -> None:
        self.chosen: dict[str, Any] = {}
        self.cancelled = 0
        self.answer = self.ready = self.stream = self

    def options(self, **chosen: Any) -> Handle:
        """See DeploymentHandle."""
        self.chosen |= chosen
        return self

    def remote(self, *_: Any) -> Handle:
        """See DeploymentHandle."""
        return self

    def __await__(self) -> Any:
        return asyncio.Event().wait().__await__()

    def __aiter__(self) -> Handle:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    def cancel(self) -> None:
        """See DeploymentResponse."""
        self.cancelled += 1


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """Which every application has. It is got on the loop: simulated seconds wait for no thread."""

    async def at_once(function: Any, *args: Any) -> Any:
        return function(*args)

    made = Handle()
    monkeypatch.setattr("ray.serve.get_deployment_handle", lambda *_: made)
    monkeypatch.setattr("serve.models.calls.asyncio.to_thread", at_once)
    return made


@pytest.mark.parametrize("way", ["answer", "ready", "stream"])
def test_a_call_ends_with_the_model_and_the_next_one_fails_at_once(
    handle: Handle, way: str
) -> None:
    async def ask(calls: RayCalls) -> None:
        if way == "ready":
            await calls.ready("m")
        elif way == "answer":
            await calls.answer("m", "embeddings", {}, 60)
        else:
            await anext(calls.stream("m", "chat/completions", {}, 60))

    async def run() -> None:
        world = World()
        calls = RayCalls({"m": "m"}, world.deployed)
        asked = asyncio.create_task(ask(calls))
        await asyncio.sleep(0.5)
        world.seen[MODEL] = "it failed"
        with pytest.raises(ModelNotLoaded, match="it failed"):
            await asked
        assert handle.cancelled == 1
        looks = world.looks
        with pytest.raises(ModelNotLoaded, match="it failed"):
            await ask(calls)
        assert (handle.cancelled, world.looks) == (1, looks)

    run_virtually(run())


@pytest.mark.parametrize(("entry", "chosen"), [("m", {}), ("pool", {"multiplexed_model_id": "m"})])
def test_only_a_model_of_a_pool_is_sought_by_its_name(
    handle: Handle, entry: str, chosen: dict[str, Any]
) -> None:
    async def run() -> None:
        world = World()
        world.seen[APPLICATION.format(entry)] = ""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await RayCalls({"m": entry}, world.deployed).ready("m")
        assert handle.chosen == chosen

    run_virtually(run())
