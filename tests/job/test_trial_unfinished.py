"""A trial that cannot ask about every record ends itself, not the run that sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from job.analyse.stored import AskSettings
from job.errors import StoppedEarly
from job.run_folder import RunFolder
from job.storage.place import Place
from job.trial import canary as sending
from job.trial.canary import NoVerdict
from job.trial.draw import Drawn
from job.trial.kept import Kept
from job.trial.trial import Trial
from job.trial.ways import Unfinished, Way, ask_way
from serve.ask.errors import CapReached
from serve.ask.limiter import Limits
from serve.ask.limiter_host import InProcessPermits
from serve.ask.settings import Provider
from serve.ask.spend import Call
from serve.simulated import SimulatedProvider
from tests.job.make import record
from tests.job.trials import NoCap, provider_settings

MODELS = ("small", "large")
DAY = [record("disk is full on machine 1"), record("prove that the disk is full on machine 2")]


@dataclass(slots=True)
class TooDear(NoCap):
    """A cap under which no call of these models fits."""

    models: tuple[str, ...]
    attempts: int = 0

    async def reserve(self, ticket: str, call: Call) -> None:
        if call.model in self.models:
            raise CapReached("the cap of 1 USD is reached")


@pytest.mark.slow
@pytest.mark.parametrize(("too_dear", "ended"), [(("large",), Unfinished), (MODELS, StoppedEarly)])
def test_a_model_that_is_too_dear_leaves_it_unfinished_and_all_of_them_stop_it(
    too_dear: tuple[str, ...], ended: type[StoppedEarly]
) -> None:
    kept = Kept()

    async def ask(server: SimulatedProvider) -> None:
        provider = Provider(base_url=server.base_url, models=MODELS)
        way = Way("single", provider, AskSettings("small", "en", "single", tiers=MODELS), None)
        permits = InProcessPermits(Limits(max_concurrency=4))
        await ask_way(way, DAY, permits, TooDear(too_dear), kept)

    with (
        SimulatedProvider(provider_settings(models=MODELS)) as server,
        pytest.raises(StoppedEarly, match="the cap of 1 USD is reached") as error,
    ):
        asyncio.run(ask(server))
    assert error.type is ended
    assert len(kept.rows) == (ended is Unfinished)


@dataclass(slots=True)
class Remote:
    """The part of an actor's method that a canary uses."""

    called: list[tuple[Any, ...]] = field(default_factory=list)

    def remote(self, *words: Any, **more: Any) -> None:
        self.called.append((*words, *more.values()))


@pytest.mark.parametrize("error", [Unfinished("the cap is reached"), StoppedEarly("quota")])
def test_a_canary_stops_the_run_only_if_it_was_stopped_itself(
    error: StoppedEarly, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    async def ask(trial: Trial, drawn: Drawn, analyst: Any) -> None:
        trial.kept["packed"] = Kept(rows={b"key": b"paid for"})
        raise error

    drawn = SimpleNamespace(records=DAY, distinct=2)
    replaced: Mapping[str, Any] = {
        "draw": lambda *words: drawn,
        "_ask": ask,
        "_way": lambda mode, analyst: SimpleNamespace(name=mode),
        "RayAnswers": lambda actor: None,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(sending, name, value)
    monkeypatch.setattr(ray, "get", lambda ref: ref)
    stop, put_many = Remote(), Remote()
    analyst: Any = SimpleNamespace(
        ask=AskSettings("small", "en"),
        answers=SimpleNamespace(put_many=put_many),
        board=SimpleNamespace(stop=stop),
    )
    plan: Any = SimpleNamespace(slices=(), cleaning={})
    folder = RunFolder(Place.of(tmp_path))
    found = sending.send_canary(0.1, plan, folder, analyst, None, "run")
    assert isinstance(found, NoVerdict)
    if isinstance(error, Unfinished):
        assert stop.called == []
        assert put_many.called == [([(b"key", b"paid for")], False)]
        assert "could not be finished (the cap is reached)" in found.warnings()[0]
    else:
        assert stop.called == [("quota", 4)]
        assert (put_many.called, found.warnings()) == ([], [])
    assert not (tmp_path / "canary.json").exists()
