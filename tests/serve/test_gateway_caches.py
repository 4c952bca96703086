"""The caches of a gateway as its clients see them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import ClientSession, TCPConnector, web
from openai import OpenAI

from serve.gateway.keys import digest_of, new_key
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import (
    Upstream,
    chunks,
    completion,
    plain,
    streamed,
    upstream_world,
)

PRICES = {"currency": "CNY", "input": 2, "output": 10}
CACHED = {"x-fupan-cache": "exact,near"}
CLIENTS = 200


def ask(text: str = "Say hello.", **fields: Any) -> dict[str, Any]:
    """A chat at temperature 0."""
    messages = [{"role": "user", "content": text}]
    return {"model": "simulated", "temperature": 0, "messages": messages, **fields}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Upstream, World]]:
    with upstream_world() as upstream:
        provider = provider_at(upstream.url, prices=PRICES, limits={"max_concurrency": 300})
        with gateway_world({"main": provider}, {"cache": {"recheck": 1.0}}) as world:
            yield upstream, world


@pytest.fixture
def upstream(running: tuple[Upstream, World]) -> Upstream:
    running[0].bodies.clear()
    running[0].begin_anew()
    return running[0]


@pytest.fixture
def http(running: tuple[Upstream, World]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running[1].base_url, timeout=60) as client:
        yield client


@pytest.fixture
def openai(running: tuple[Upstream, World]) -> OpenAI:
    return OpenAI(
        base_url=running[1].base_url, api_key="none", max_retries=0, default_headers=CACHED
    )


def chat(http: httpx.Client, text: str, **headers: str) -> httpx.Response:
    answer = http.post("/chat/completions", json=ask(text), headers={**CACHED, **headers})
    assert answer.status_code == 200, answer.text
    return answer


def test_an_equal_request_gets_the_same_bytes_for_nothing(
    upstream: Upstream, http: httpx.Client
) -> None:
    first, again = chat(http, "Equal?"), chat(http, "Equal?")
    assert first.content == again.content
    assert upstream.calls == 1
    assert (first.headers["x-fupan-cache"], again.headers["x-fupan-cache"]) == ("miss", "exact")
    assert (first.headers["x-fupan-cost"], again.headers["x-fupan-cost"]) == ("0.00004 CNY", "0")
    assert first.headers["x-fupan-model"] == again.headers["x-fupan-model"] == "main/simulated"


def test_nothing_is_cached_unless_it_is_asked_for(upstream: Upstream, http: httpx.Client) -> None:
    for _ in range(2):
        answer = http.post("/chat/completions", json=ask("Not asked for."))
        assert answer.headers["x-fupan-cache"] == "off"
    for _ in range(2):
        chat(http, "No store.", **{"cache-control": "no-store"})
    for _ in range(2):
        chat(http, "No cache.", **{"cache-control": "no-cache"})
    assert upstream.calls == 6
    assert chat(http, "No cache.").headers["x-fupan-cache"] == "exact"


def test_a_kept_answer_is_a_valid_stream(upstream: Upstream, openai: OpenAI) -> None:
    body = ask("As a stream?")
    whole = openai.chat.completions.create(**body)
    kept = list(
        openai.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
    )
    assert upstream.calls == 1
    assert "".join(c.choices[0].delta.content or "" for c in kept if c.choices) == "Hello."
    assert {chunk.id for chunk in kept} == {whole.id}
    assert kept[-2].choices[0].finish_reason == "stop"
    assert kept[-1].usage == whole.usage
    raw = openai.chat.completions.with_raw_response.create(**body, stream=True)
    assert (raw.headers["x-fupan-cache"], raw.headers["x-fupan-cost"]) == ("exact", "0")


def test_a_stream_is_kept_whole_with_the_usage_its_client_did_not_see(
    upstream: Upstream, openai: OpenAI
) -> None:
    body = ask("A stream first?")
    stream = list(openai.chat.completions.create(**body, stream=True))
    assert all(chunk.usage is None for chunk in stream)
    kept = openai.chat.completions.with_raw_response.create(**body)
    assert kept.headers["x-fupan-cache"] == "exact"
    whole = kept.parse()
    assert whole.choices[0].message.content == "Hello."
    assert whole.usage is not None
    assert whole.usage.prompt_tokens == 5
    assert upstream.calls == 1


def test_a_stream_that_was_cut_off_is_not_kept(upstream: Upstream, http: httpx.Client) -> None:
    upstream.planned.append(streamed(chunks("Hel", "lo")[:2], done=False))
    headers = dict(CACHED)
    broken = http.post("/chat/completions", json=ask("Cut?", stream=True), headers=headers)
    assert '"error"' in broken.text
    whole = http.post("/chat/completions", json=ask("Cut?", stream=True), headers=headers)
    assert (whole.headers["x-fupan-cache"], upstream.calls) == ("miss", 2)


def test_a_near_hit_is_marked_and_checked_live(upstream: Upstream, http: httpx.Client) -> None:
    chat(http, "How do I rename a file in Linux?")
    upstream.wait_arrived()
    while upstream.arrived.acquire(blocking=False):
        pass
    near = chat(http, "how do i rename a file in Linux ?")
    assert (near.headers["x-fupan-cache"], near.headers["x-fupan-cost"]) == ("near", "0")
    upstream.wait_arrived()
    assert upstream.bodies[-1]["messages"][0]["content"] == "how do i rename a file in Linux ?"


def test_embeddings_are_kept(upstream: Upstream, http: httpx.Client) -> None:
    body = {"model": "simulated", "input": ["one", "two"]}
    answers = [http.post("/embeddings", json=body, headers=CACHED) for _ in range(2)]
    assert [a.headers["x-fupan-cache"] for a in answers] == ["miss", "exact"]
    assert answers[0].content == answers[1].content
    assert upstream.calls == 1


def test_an_idempotency_key_is_asked_once(upstream: Upstream, http: httpx.Client) -> None:
    def send(text: str, key: str = "key-1") -> httpx.Response:
        body = ask(text, temperature=1)
        return http.post("/chat/completions", json=body, headers={"idempotency-key": key})

    first, again = send("Once."), send("Once.")
    assert (first.content, upstream.calls) == (again.content, 1)
    assert (again.headers["x-fupan-cache"], again.headers["x-fupan-cost"]) == ("repeated", "0")
    refused = send("Twice.")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "idempotency_key_reused"
    assert send("Twice.", "key-2").status_code == 200


def test_an_unknown_cache_is_an_error(upstream: Upstream, http: httpx.Client) -> None:
    answer = http.post("/chat/completions", json=ask(), headers={"x-fupan-cache": "fuzzy"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "x-fupan-cache")


async def test_of_200_equal_requests_one_is_asked_also_when_the_first_leaves(
    running: tuple[Upstream, World], upstream: Upstream
) -> None:
    go = threading.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(go.wait, 10)
        return await plain(request)

    while upstream.arrived.acquire(blocking=False):
        pass
    upstream.planned.append(held)
    url = f"{running[1].base_url}/chat/completions"

    async def send() -> tuple[bytes, str, str]:
        async with session.post(url, json=ask("All at once?"), headers=CACHED) as answer:
            return (
                await answer.read(),
                answer.headers["x-fupan-cache"],
                answer.headers["x-fupan-cost"],
            )

    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        first = asyncio.create_task(send())
        await asyncio.to_thread(upstream.wait_arrived)
        others = [asyncio.create_task(send()) for _ in range(CLIENTS - 1)]
        first.cancel()
        await asyncio.wait([first])
        go.set()
        answers = await asyncio.gather(*others)
    assert upstream.calls == 1
    assert {orjson.loads(body)["id"] for body, _, _ in answers} == {completion()["id"]}
    # Whoever came after the answer found it kept.
    assert set(Counter(cache for _, cache, _ in answers)) <= {"joined", "exact"}
    assert {cost for _, _, cost in answers} == {"0"}


async def test_of_200_equal_streams_one_is_asked_and_each_gets_it_from_the_start(
    running: tuple[Upstream, World], upstream: Upstream
) -> None:
    go = threading.Event()

    async def held(_: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(go.wait, 10)
        return web.Response()

    said = chunks("Hel", "lo", ".")

    async def two_parts(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for each in said[:2]:
            await response.write(b"data: " + orjson.dumps(each) + b"\n\n")
        await held(request)
        for each in said[2:]:
            await response.write(b"data: " + orjson.dumps(each) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    upstream.planned.append(two_parts)
    url = f"{running[1].base_url}/chat/completions"
    body = ask("All at once, as a stream?", stream=True)
    begun = asyncio.Semaphore(0)

    async def send() -> bytes:
        async with session.post(url, json=body, headers=CACHED) as answer:
            start = await answer.content.readuntil(b"\n\n")
            begun.release()
            return start + await answer.read()

    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        tasks = [asyncio.create_task(send())]
        await begun.acquire()
        tasks += [asyncio.create_task(send()) for _ in range(CLIENTS - 1)]
        for _ in range(CLIENTS - 1):
            await begun.acquire()
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        go.set()
        answers = set(await asyncio.gather(*tasks[1:]))
    assert upstream.calls == 1
    (answer,) = answers
    payloads = [line[6:] for line in answer.split(b"\n\n") if line]
    assert payloads[-1] == b"[DONE]"
    texts = [orjson.loads(p)["choices"][0]["delta"].get("content") for p in payloads[:-1]]
    assert "".join(text or "" for text in texts) == "Hello."


def test_tenants_share_nothing_keys_of_one_do_and_hits_are_not_billed(tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("web", "app", "other")}
    tenants = {"web": "shop", "app": "shop", "other": "bank"}
    file = tmp_path / "keys.json"
    records = [
        {"name": name, "tenant": tenants[name], "sha256": digest_of(key), "rpm": 1}
        for name, key in keys.items()
    ]
    file.write_bytes(orjson.dumps(records))
    serve = {"keys": str(file), "cache": {"exact": True, "near": True}}
    with (
        upstream_world() as upstream,
        gateway_world({"main": upstream.url}, serve) as world,
        httpx.Client(base_url=world.base_url) as http,
    ):

        def send(name: str, text: str = "Ours?") -> httpx.Response:
            headers = {"authorization": f"Bearer {keys[name]}"}
            return http.post("/chat/completions", json=ask(text), headers=headers)

        def cache(name: str) -> str:
            return str(send(name).headers["x-fupan-cache"])

        assert [cache(name) for name in ("web", "app", "web", "web")] == ["miss", *["exact"] * 3]
        assert [cache(name) for name in ("other", "other")] == ["miss", "exact"]
        assert upstream.calls == 2
        # Of its one request a minute, the hits have left the key `app` all and `web` none.
        assert send("app", "Another?").status_code == 200
        assert send("web", "A third?").json()["error"]["code"] == "key_rate_limited"
        # What is kept is given to a key that may not ask any more, too.
        assert send("web", "Another?").headers["x-fupan-cache"] == "exact"
