"""Whatever the provider does, a run ends, and no record is left waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web

from job.analyse import patience
from job.records import Result
from serve.ask.errors import Misconfigured, QuotaExhausted
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import MemoryStore, dispatcher
from tests.job.make import record

RECORDS = [record(f"all well on {n}") for n in range(60)]
Reply = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(reply: Reply) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers every request with `reply`; its base URL and the bodies it saw."""
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(orjson.loads(await request.read()))
        return await reply(seen[-1])

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", seen
    finally:
        await runner.cleanup()


def refusing(status: int, message: str, **headers: str) -> Reply:
    async def reply(body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": message}}, status=status, headers=headers)

    return reply


def completing(content: object, finish_reason: str = "stop") -> Reply:
    async def reply(body: dict[str, Any]) -> web.StreamResponse:
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        return web.json_response({"model": "m", "choices": [choice]})

    return reply


def vias(results: Sequence[Result]) -> set[str]:
    return {result.via for result in results}


@pytest.mark.parametrize(
    "reply",
    [
        refusing(503, "down"),
        refusing(503, "down", **{"retry-after": "300"}),
        refusing(429, "later", **{"retry-after": "300"}),
        refusing(429, "later"),
    ],
)
async def test_a_stop_ends_those_that_wait_for_their_next_attempt(reply: Reply) -> None:
    asked = asyncio.Event()

    async def telling(body: dict[str, Any]) -> web.StreamResponse:
        asked.set()
        return await reply(body)

    async with (
        asyncio.timeout(60),
        answering(telling) as (base_url, _),
        dispatcher(base_url, pauses=(60.0, 60.0)) as asking,
    ):
        submitted = asyncio.create_task(asking.submit(RECORDS))
        await asked.wait()
        asking.stop("enough")
        assert vias(await submitted) == {"unasked"}


async def test_a_dead_port_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "UNREACHABLE_SECONDS", 0.5)
    async with asyncio.timeout(60), dispatcher("http://127.0.0.1:9/v1") as asking:
        results = await asking.submit(RECORDS)
        assert isinstance(asking.stopped, Misconfigured)
        assert "127.0.0.1:9" in str(asking.stopped)
    assert vias(results) == {"unasked"}


async def test_a_silent_provider_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_PATIENCE_SECONDS", 0.5)
    async with (
        asyncio.timeout(60),
        answering(refusing(503, "down")) as (base_url, _),
        dispatcher(base_url) as asking,
    ):
        results = await asking.submit(RECORDS)
        assert "answered nothing" in str(asking.stopped)
    assert vias(results) == {"unasked"}


async def test_a_provider_that_asks_for_more_than_ten_minutes_ends_the_run() -> None:
    reply = refusing(503, "maintenance", **{"retry-after": "86400"})
    async with answering(reply) as (base_url, _), dispatcher(base_url) as asking:
        assert vias(await asking.submit(RECORDS)) == {"unasked"}
        assert isinstance(asking.stopped, QuotaExhausted)


async def test_a_feature_that_extra_body_insists_on_is_not_stepped_down_for_ever() -> None:
    with SimulatedProvider(Settings(unsupported=frozenset({"temperature"}))) as server:
        async with dispatcher(server.base_url, extra_body={"temperature": 0.3}) as asking:
            assert vias(await asking.submit(RECORDS)) == {"unasked"}
            assert isinstance(asking.stopped, Misconfigured)
        assert server.stats()["requests"] <= 3


async def test_what_is_refused_whatever_it_says_is_not_bisected_to_the_end() -> None:
    many = [record(f"all well on {n}") for n in range(400)]
    async with answering(refusing(400, "Model Not Exist")) as (base_url, seen):
        async with dispatcher(base_url) as asking:
            assert vias(await asking.submit(many)) <= {"unasked", "failed"}
            assert isinstance(asking.stopped, Misconfigured)
        assert len(seen) < 80


@pytest.mark.parametrize("content", [[{"type": "image"}], 7, {"a": 1}])
async def test_an_odd_reply_fails_its_records_not_the_run(content: object) -> None:
    async with (
        asyncio.timeout(60),
        answering(completing(content)) as (base_url, _),
        dispatcher(base_url, pauses=()) as asking,
    ):
        assert vias(await asking.submit(RECORDS[:1])) == {"failed"}
        assert asking.stopped is None


async def test_no_bytes_are_sent_again_after_a_cut_where_no_length_can_be_asked_for() -> None:
    async def reply(body: dict[str, Any]) -> web.StreamResponse:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in body:
                return await refusing(400, f"unsupported parameter: {name}")(body)
        return await completing('{"results":[{"id', "length")(body)

    async with answering(reply) as (base_url, seen), dispatcher(base_url) as asking:
        results = await asking.submit(RECORDS[:3])
    assert {result.reason for result in results} == {"answer_cut_off"}
    bodies = [orjson.dumps(b) for b in seen if "max_tokens" not in b and len(b) == 4]
    assert len(bodies) == len(set(bodies))


async def test_records_that_arrive_while_the_store_is_asked_are_paid_once() -> None:
    class SlowStore(MemoryStore):
        async def get_many(
            self, keys: Sequence[bytes], since: float | None = None
        ) -> dict[bytes, bytes]:
            await asyncio.sleep(0.05)
            return await super().get_many(keys)

    one = record("all well", digest="d" * 32)
    two = record("all well", digest="d" * 32, source="other")
    with SimulatedProvider(Settings(time_scale=200.0)) as server:
        async with dispatcher(server.base_url, SlowStore()) as asking:
            await asyncio.gather(asking.submit([one]), asking.submit([two]))
        assert server.stats()["requests"] == 1


async def test_a_store_that_cannot_be_read_stops_the_run() -> None:
    class BrokenStore(MemoryStore):
        async def get_many(
            self, keys: Sequence[bytes], since: float | None = None
        ) -> dict[bytes, bytes]:
            raise OSError("input/output error")

    with SimulatedProvider(Settings(time_scale=200.0)) as server:
        async with dispatcher(server.base_url, BrokenStore()) as asking:
            assert vias(await asking.submit(RECORDS)) == {"unasked"}
            assert "input/output error" in str(asking.stopped)
        assert server.stats()["requests"] == 0


async def test_a_damaged_stored_answer_is_asked_again() -> None:
    store = MemoryStore()
    with SimulatedProvider(Settings(time_scale=200.0)) as server:
        for _ in range(2):
            async with dispatcher(server.base_url, store) as asking:
                assert vias(await asking.submit(RECORDS[:1])) == {"answered"}
            store.held = dict.fromkeys(store.held, b"\x00 not an answer")
        assert server.stats()["requests"] == 2
