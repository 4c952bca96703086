"""A generator in a run's own actor: calls that are given up, and a model that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import ray

from job.local_actor import ActorCalls, GeneratorHost
from serve.ask.errors import Unavailable
from serve.models.settings import ModelSettings

pytestmark = pytest.mark.ray

SECONDS = 60.0


class Model:
    """Implements `ModelServer`, of the file that `generator` names: `break` breaks it, once for
    each process; `hold` is never answered."""

    def __init__(self, settings: Any) -> None:
        self._file = Path(settings.generator)
        self._processes = len(self._file.read_text()) if self._file.exists() else 0
        self._file.write_text("x" * (self._processes + 1))
        self._running = 0
        self._broken = False

    async def answer(self, endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """See `ModelServer.answer`."""
        if body["said"] == "break" and self._processes == 0:
            self._broken = True
        if self._broken:
            raise Unavailable("broken", 500)
        self._running += 1
        try:
            if body["said"] == "hold":
                await asyncio.Event().wait()
            return f"{self._processes}".encode()
        finally:
            self._running -= 1

    def numbers(self) -> Mapping[str, float]:
        """See `ModelServer.numbers`."""
        return {"running": self._running}

    def check_health(self) -> None:
        """See `ModelServer.check_health`."""
        if self._broken:
            raise RuntimeError("CUDA error")


def load(settings: ModelSettings) -> Any:
    """See `serve.models.load`."""
    return Model(settings)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=2, include_dashboard=False, configure_logging=False)
    yield
    ray.shutdown()


def _host(tmp_path: Path) -> Any:
    host = ray.remote(GeneratorHost).options(
        num_cpus=0, max_restarts=1, max_task_retries=1, max_concurrency=4
    )
    return host.remote({"generator": str(tmp_path / "processes")}, load)


async def _running(actor: Any, wanted: float) -> None:
    async with asyncio.timeout(SECONDS):
        while (await actor.numbers.remote())["running"] != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the actor tells nobody


async def test_a_call_that_is_given_up_ends_in_the_actor(cluster: None, tmp_path: Path) -> None:
    actor = _host(tmp_path)
    call = asyncio.create_task(ActorCalls(actor).answer("m", "chat", {"said": "hold"}, SECONDS))
    await _running(actor, 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _running(actor, 0)
    assert await ActorCalls(actor).answer("m", "chat", {"said": "a"}, SECONDS) == b"0"


async def test_a_model_that_broke_is_loaded_anew_and_answers(cluster: None, tmp_path: Path) -> None:
    calls = ActorCalls(_host(tmp_path))
    assert await calls.answer("m", "chat", {"said": "a"}, SECONDS) == b"0"
    assert await calls.answer("m", "chat", {"said": "break"}, SECONDS) == b"1"
