"""A run that asks a model of its cluster, whose server is in this process here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest

from job.deployed_embedder import (
    MOST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    TEXTS,
    DeployedEmbedder,
)
from job.embed import AGAIN_SECONDS, ByDeployment
from job.themes.space import Vectors
from serve.ask.errors import AskError, TimedOut, Unavailable
from serve.models.errors import ModelBusy, ModelLost, ModelNotLoaded
from tests.serve.embedding_world import FakeEngine, server, vector_of


class Calls:
    """Implements `ModelAnswers` by a server of a FakeEngine. `wrong`: what the next calls end with
    instead."""

    def __init__(self, engine: FakeEngine, wrong: list[AskError]) -> None:
        self.engine = engine
        self.wrong = wrong
        self.sizes: list[int] = []

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelAnswers`."""
        self.sizes.append(len(body["input"]))
        if self.wrong:
            raise self.wrong.pop(0)
        async with server(self.engine) as of:
            return await of.answer(endpoint, body, seconds)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is waited for between two tries, and is not here."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr("job.deployed_embedder.asyncio.sleep", at_once)
    return found


def deployed(calls: Calls, loaded: Callable[[], bool] = lambda: True) -> DeployedEmbedder:
    return DeployedEmbedder("e5", calls, loaded)


class Actor:
    """What is asked where the deployment is not. `asked`: its texts."""

    def __init__(self, dim: int = FakeEngine.dim) -> None:
        self.dim = dim
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.zeros((len(texts), self.dim), dtype=np.float32)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def by(calls: Calls, actor: Actor, clock: Clock | None = None) -> ByDeployment:
    return ByDeployment(deployed(calls), lambda: actor, clock or Clock())


def test_distinct_texts_are_asked_in_parts_and_rows_are_in_order() -> None:
    calls, actor = Calls(FakeEngine(), []), Actor()
    encode = by(calls, actor)
    texts = [f"text {number % 100}" for number in range(150)]
    vectors = encode(texts)
    assert sorted(calls.sizes) == sorted([TEXTS, 100 - TEXTS])
    assert np.array_equal(vectors, np.stack([vector_of(text) for text in texts]))
    assert encode([]).shape == (0, FakeEngine.dim)
    assert not actor.asked


def test_a_busy_model_and_a_lost_replica_are_asked_again(pauses: list[float]) -> None:
    calls = Calls(FakeEngine(), [ModelBusy("full", 503, 7.0), ModelLost("gone")])
    assert list(deployed(calls).vectors(["a"])) == ["a"]
    assert [pause for pause in pauses if pause] == [7.0, 2 * PAUSE_SECONDS]


@pytest.mark.parametrize("error", [ModelBusy("full"), ModelLost("gone")])
def test_what_passes_is_waited_for_some_minutes(error: AskError, pauses: list[float]) -> None:
    calls = Calls(FakeEngine(), [error] * 1000)
    with pytest.raises(type(error)):
        deployed(calls).vectors(["a"])
    assert PATIENCE_SECONDS <= sum(pauses) <= PATIENCE_SECONDS + MOST_PAUSE_SECONDS
    assert len(calls.sizes) < 30


@pytest.mark.parametrize(
    "error", [Unavailable("failed", 500), TimedOut("late"), ModelNotLoaded("not there")]
)
def test_what_does_not_pass_is_not_asked_again(error: AskError) -> None:
    calls = Calls(FakeEngine(), [error])
    with pytest.raises(type(error)):
        deployed(calls).vectors(["a"])
    assert calls.sizes == [1]


def test_a_model_that_is_not_in_memory_is_not_asked() -> None:
    calls = Calls(FakeEngine(), [])
    with pytest.raises(ModelNotLoaded):
        deployed(calls, lambda: False).vectors(["a"])
    assert not calls.sizes


def test_a_new_process_is_asked_only_once_it_has_the_model(pauses: list[float]) -> None:
    calls = Calls(FakeEngine(), [ModelLost("gone")])
    loaded = iter([True, False, False, True])
    assert list(deployed(calls, lambda: next(loaded)).vectors(["a"])) == ["a"]
    assert calls.sizes == [1, 1]
    assert len([pause for pause in pauses if pause]) == 3


def test_a_new_process_that_never_has_the_model_is_never_asked(pauses: list[float]) -> None:
    calls = Calls(FakeEngine(), [ModelLost("gone")])
    loaded = chain([True], repeat(False))
    with pytest.raises(ModelLost):
        deployed(calls, lambda: next(loaded)).vectors(["a"])
    assert calls.sizes == [1]


def test_what_the_model_refuses_alone_is_the_actors() -> None:
    calls, actor = Calls(FakeEngine(), []), Actor()
    long, huge = "w " * 100, "huge text"
    vectors = by(calls, actor)(["a", long, "b", huge, long])
    assert actor.asked == [long, huge]
    assert np.array_equal(vectors[[0, 2]], np.stack([vector_of("a"), vector_of("b")]))
    assert not vectors[[1, 3, 4]].any()


def test_after_it_failed_a_deployment_is_tried_again_later() -> None:
    calls, actor, clock = Calls(FakeEngine(), [Unavailable("failed", 500)]), Actor(), Clock()
    encode = by(calls, actor, clock)
    assert encode(["a"]).shape == (1, FakeEngine.dim)
    encode(["b"])
    assert actor.asked == ["a", "b"]
    assert calls.sizes == [1]
    clock.now = AGAIN_SECONDS
    assert np.array_equal(encode(["c"])[0], vector_of("c"))
    assert actor.asked == ["a", "b"]


def test_an_answer_that_is_none_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, actor = Calls(FakeEngine(), []), Actor()

    async def nothing(*_: object) -> bytes:
        return b'{"data":[]}'

    monkeypatch.setattr(calls, "answer", nothing)
    assert by(calls, actor)(["a", "b"]).shape == (2, FakeEngine.dim)
    assert actor.asked == ["a", "b"]


def test_vectors_of_one_length_are_given_whatever_the_deployment_has() -> None:
    actor = Actor(dim=7)
    assert by(Calls(FakeEngine(), []), actor)(["a", "w " * 100]).shape == (2, 7)
