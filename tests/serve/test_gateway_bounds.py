"""What is too much: bodies, requests at once, inputs. It is refused, and takes no memory."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import orjson
import pytest

from serve.ask.settings import LimitSettings
from tests.serve.crowd import Told, crowd
from tests.serve.gateway_world import World, everybody_left, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream, silence, upstream_world

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Say hello."}]}
MIB = 2**20
BODY = 100 * MIB
MANY = 10_000


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with upstream_world() as upstream:
        yield upstream


@pytest.fixture
def world(upstream: Upstream) -> Iterator[World]:
    with gateway_world({"main": upstream.url}) as world:
        yield world


def resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def pieces(sent: list[int]) -> Iterator[bytes]:
    """A body of BODY bytes, whose length nobody is told."""
    piece = b" " * MIB
    for _ in range(BODY // MIB):
        sent.append(len(piece))
        yield piece


async def test_a_body_that_says_it_is_too_long_is_not_read(
    world: World, upstream: Upstream
) -> None:
    port = int(world.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        b"content-length: %d\r\nexpect: 100-continue\r\n\r\n" % BODY
    )
    status = await reader.readline()
    writer.close()
    assert b"413" in status
    assert upstream.calls == 0


def test_a_body_that_turns_out_too_long_is_not_held(world: World, upstream: Upstream) -> None:
    before, sent = resident(), [0]
    url = f"{world.base_url}/chat/completions"
    try:
        answer = httpx.post(url, content=pieces(sent), timeout=60)
    except httpx.TransportError:
        # The connection may be closed while the client is still sending.
        assert sum(sent) < BODY
    else:
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert resident() - before < 50 * MIB
    assert upstream.calls == 0
    assert httpx.post(f"{world.base_url}/chat/completions", json=CHAT).status_code == 200


def test_more_inputs_than_are_taken_at_once(upstream: Upstream) -> None:
    with gateway_world({"main": upstream.url}, {"admission": {"array": 3}}) as world:
        url = f"{world.base_url}/embeddings"
        fits = httpx.post(url, json={"model": "simulated", "input": ["a"] * 3})
        refused = httpx.post(url, json={"model": "simulated", "input": ["a"] * 4})
    assert fits.status_code == 200
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "input"


def turned_away(world: World, many: int) -> int:
    """How many of so many do not fit in."""
    settings = world.gateway.settings.serve.admission
    return many - settings.in_flight - settings.waiting


def crowd_of_its_own(world: World, many: int) -> list[Told]:
    """What those are told who do not fit in. From a process of its own."""
    url = f"{world.base_url}/chat/completions"
    told = [url, orjson.dumps(CHAT).decode(), str(many), str(turned_away(world, many))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.serve.crowd", *told],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return [(status, code, wait) for status, code, wait in orjson.loads(done.stdout)]


def test_who_does_not_fit_in_the_queue_is_turned_away(upstream: Upstream) -> None:
    few = {"admission": {"in_flight": 2, "waiting": 3}}
    with gateway_world({"main": upstream.url}, few) as world:
        upstream.planned.extend([silence] * 5)
        url = f"{world.base_url}/chat/completions"
        told = asyncio.run(crowd(url, CHAT, 12, turned_away(world, 12)))
        assert [answer[:2] for answer in told] == [(503, "gateway_overloaded")] * 7
        assert all(wait >= 1 for _, _, wait in told)
        assert world.run(everybody_left(world.gateway.admission, 60)) == (0, 0)


def test_bodies_that_come_slowly_keep_nobody_out(upstream: Upstream) -> None:
    few = {"admission": {"in_flight": 2, "waiting": 2}}
    with gateway_world({"main": upstream.url}, few) as world, ExitStack() as slow:
        address = ("127.0.0.1", int(world.url.rpartition(":")[2]))
        for _ in range(5):
            connection = slow.enter_context(socket.create_connection(address, timeout=60))
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                b"content-length: 9\r\n\r\n{"
            )
        # One of them had to make room for another.
        assert httpx.post(f"{world.base_url}/chat/completions", json=CHAT).status_code == 200


@pytest.mark.slow
def test_ten_thousand_requests_at_once(upstream: Upstream) -> None:
    provider = provider_at(upstream.url, limits=LimitSettings(max_concurrency=200))
    with gateway_world({"main": provider}) as world:
        upstream.planned.extend([silence] * 1_200)
        before = resident()
        told = crowd_of_its_own(world, MANY)
        assert len(told) == MANY - 1_200
        assert {answer[:2] for answer in told} == {(503, "gateway_overloaded")}
        # A connection takes about 10 KiB, of whoever waits on it or was turned away.
        assert resident() - before < 300 * MIB
        assert world.run(everybody_left(world.gateway.admission, 60)) == (0, 0)
        assert httpx.get(f"{world.url}/healthz").status_code == 200
