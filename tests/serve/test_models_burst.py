"""Many requests at once at a model of the cluster: as many as may wait are taken, the others are
told at once when to come again."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from serve.embedding.server import EmbeddingServer
from serve.gateway.build import build_gateway
from serve.models.contract import ModelServer
from serve.models.settings import EmbedderSettings, Entry, GeneratorSettings
from tests.serve.embedding_world import FakeEmbedder, FakeEngine
from tests.serve.gateway_world import World, gateway_world
from tests.serve.generation_world import DirectCalls, FakeForward, server

QUEUE = 5
SLOTS = 2
BURST = 40
SECONDS = 60.0
NOWHERE = "http://127.0.0.1:9/v1"
_COUNTED = re.compile(r'^fupan_requests_total\{endpoint="[^"]+",status="(\d+)"\} ([0-9.]+)$', re.M)


@contextmanager
def gateway(served: ModelServer, entry: Entry) -> Iterator[World]:
    """Before one model of the cluster, `m`."""
    with gateway_world(
        {"main": NOWHERE},
        build=lambda settings: build_gateway(
            settings.model_copy(update={"models": {"m": entry}}), models=DirectCalls(served)
        ),
    ) as world:
        yield world
        world.run(served.aclose())


def chat(number: int) -> tuple[str, Mapping[str, Any]]:
    """A short one, unlike the others."""
    messages = [{"role": "user", "content": f"{number}"}]
    return "chat/completions", {"model": "m", "messages": messages, "max_tokens": 2}


def texts(number: int) -> tuple[str, Mapping[str, Any]]:
    """One, unlike the others."""
    return "embeddings", {"model": "m", "input": f"text {number}"}


async def burst(
    world: World,
    asked: Callable[[int], tuple[str, Mapping[str, Any]]],
    count: int,
    taken: int,
    release: Callable[[], None],
) -> tuple[list[httpx.Response], list[httpx.Response]]:
    """The answers to `count` requests at once: of those that are answered while nothing is
    computed, all but `taken`; and of the others, after `release`."""
    limits = httpx.Limits(max_connections=None)
    async with (
        asyncio.timeout(SECONDS),
        httpx.AsyncClient(base_url=world.base_url, limits=limits, timeout=SECONDS) as http,
    ):
        tasks = set()
        for number in range(count):
            path, body = asked(number)
            tasks.add(asyncio.create_task(http.post(path, json=body)))
        early: set[asyncio.Task[httpx.Response]] = set()
        late = tasks
        while len(early) < count - taken:
            done, late = await asyncio.wait(late, return_when=asyncio.FIRST_COMPLETED)
            early |= done
        release()
        return [each.result() for each in early], list(await asyncio.gather(*late))


def counted(world: World) -> dict[str, int]:
    """Requests by the status of their answers, as the gateway tells Prometheus."""
    told = httpx.get(f"{world.url}/metrics").text
    return {status: int(float(number)) for status, number in _COUNTED.findall(told)}


def check(world: World, early: list[httpx.Response], late: list[httpx.Response]) -> None:
    """Whoever was not taken was told so at once, all others got an answer, and all are counted."""
    assert {each.status_code for each in early} == {503}
    assert {each.json()["error"]["code"] for each in early} == {"model_overloaded"}
    assert all(int(each.headers["retry-after"]) >= 1 for each in early)
    assert {each.status_code for each in late} == {200}
    assert counted(world) == {"503": len(early), "200": len(late)}


def test_a_model_that_writes_takes_as_many_as_may_wait_and_be_written() -> None:
    forward = FakeForward(slots=SLOTS)
    forward.gate = threading.Semaphore(0)
    served = server(forward, queue=QUEUE)
    seen: list[Mapping[str, float]] = []

    def release() -> None:
        seen.append(served.numbers())
        assert forward.gate is not None
        forward.gate.release(1000)

    with gateway(served, GeneratorSettings(generator="any")) as world:
        early, late = asyncio.run(burst(world, chat, BURST, QUEUE + SLOTS, release))
        assert len(late) == QUEUE + SLOTS
        assert seen[0]["queue"] + seen[0]["running"] == QUEUE + SLOTS
        numbers = served.numbers()
        assert (numbers["queue"], numbers["running"]) == (0, 0)
        check(world, early, late)


def test_a_model_of_vectors_takes_as_many_as_may_wait_beside_what_it_computes() -> None:
    engine = FakeEngine()
    settings = EmbedderSettings(embedder="fake", queue=QUEUE)
    served = EmbeddingServer(settings, lambda *_: FakeEmbedder(engine))
    engine.open.clear()
    engine.entered.clear()
    seen: list[Mapping[str, float]] = []

    def release() -> None:
        seen.append(served.numbers())
        engine.open.set()

    async def crowd(world: World) -> tuple[list[httpx.Response], list[httpx.Response]]:
        async with httpx.AsyncClient(base_url=world.base_url, timeout=SECONDS) as http:
            path, body = texts(BURST)
            first = asyncio.create_task(http.post(path, json=body))
            assert await asyncio.to_thread(engine.entered.wait, SECONDS)
            early, late = await burst(world, texts, BURST, QUEUE, release)
            return early, [await first, *late]

    with gateway(served, settings) as world:
        early, late = asyncio.run(crowd(world))
        assert (seen[0]["queue"], seen[0]["running"]) == (QUEUE, 1)
        numbers = served.numbers()
        assert (numbers["queue"], numbers["running"]) == (0, 0)
        assert len(late) == QUEUE + 1
        check(world, early, late)


@pytest.mark.parametrize("queue", [1, QUEUE])
def test_who_is_turned_away_may_come_again_at_once_when_there_is_room(queue: int) -> None:
    forward = FakeForward(slots=1)
    forward.gate = threading.Semaphore(0)
    with gateway(server(forward, queue=queue), GeneratorSettings(generator="any")) as world:
        asyncio.run(burst(world, chat, BURST, queue + 1, lambda: forward.gate.release(1000)))  # type: ignore[union-attr]
        path, body = chat(0)
        again = httpx.post(f"{world.base_url}/{path}", json=body, timeout=SECONDS)
        assert again.status_code == 200
