"""What a provider, and everybody else, sees when a client leaves, or takes nothing any more."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web

from tests.serve.fault_world import CHAT, EMBEDDINGS, SECONDS, Setting, error, head, setting
from tests.serve.gateway_world import is_empty
from tests.serve.scripted_upstream import answered, chunk, completion, silence, streamed

LONG = 12 * 2**20
"""Bytes of an answer that no kernel buffers for one who does not read."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Setting]:
    with setting() as made:
        yield made


@pytest.fixture
def here(shared: Setting) -> Iterator[Setting]:
    shared.upstream.begin_anew()
    shared.forget_failures()
    yield shared
    shared.idle()


@pytest.mark.parametrize("sent", [b"", head(1000)[:40], head(1000), head(1000) + b'{"model": '])
def test_a_client_that_leaves_before_its_request_is_there(here: Setting, sent: bytes) -> None:
    before = here.upstream.calls
    with here.connected() as connection:
        connection.sendall(sent)
    here.idle()
    assert here.upstream.calls == before


def test_a_client_that_leaves_while_the_provider_thinks(here: Setting) -> None:
    here.upstream.planned.append(silence)
    here.leave(orjson.dumps(CHAT), lambda _: here.upstream.wait_arrived())
    here.upstream.wait_left()


def test_a_client_that_leaves_ends_every_part_of_its_document(here: Setting) -> None:
    here.upstream.planned.extend([silence] * 4)
    body = orjson.dumps({"text": "At 10:00 the disk was full."})

    def all_asked(_: socket.socket) -> None:
        for _part in range(4):
            here.upstream.wait_arrived()

    here.leave(body, all_asked, path="/v1/analyze")
    for _part in range(4):
        here.upstream.wait_left()


def test_a_client_that_leaves_in_the_middle_of_a_stream(here: Setting) -> None:
    here.upstream.planned.append(streamed([chunk({"content": "Hel"})], then=silence))

    def first_event(connection: socket.socket) -> None:
        received = b""
        while b"Hel" not in received:
            received += connection.recv(4096)

    here.leave(orjson.dumps({**CHAT, "stream": True}), first_event)
    here.upstream.wait_left()


def test_a_client_that_leaves_while_it_waits_for_a_turn() -> None:
    with setting(admission={"in_flight": 1}) as here:
        here.upstream.planned.append(silence)
        body = orjson.dumps(CHAT)

        def second(_: socket.socket) -> None:
            here.upstream.wait_arrived()
            here.leave(body, lambda _: wait_waiting(here, 1))
            wait_waiting(here, 0)

        here.leave(body, second)
        here.upstream.wait_left()
        here.idle()
        assert here.upstream.calls == 1


def test_a_client_that_leaves_while_it_waits_for_a_permit() -> None:
    with setting({"limits": {"max_concurrency": 1}}) as here:
        here.upstream.planned.append(silence)
        body = orjson.dumps(CHAT)

        def second(_: socket.socket) -> None:
            here.upstream.wait_arrived()
            here.leave(body, lambda _: until(lambda: here.world.gateway.admission.in_flight == 2))
            until(lambda: here.world.gateway.admission.in_flight == 1)

        here.leave(body, second)
        here.upstream.wait_left()
        here.idle()
        assert here.upstream.calls == 1


def test_a_client_that_does_not_read_its_stream_gives_its_turn_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        said = b"data: " + orjson.dumps(chunk({"content": "x" * 4096})) + b"\n\n"
        while True:
            await response.write(said)

    with setting() as here:
        timeout = here.world.gateway.settings.serve.timeout
        monkeypatch.setattr("serve.gateway.app.READ_SECONDS", 0.3 - timeout)

        def given_up(connection: socket.socket) -> None:
            here.idle_after(here.upstream.wait_arrived)
            until(lambda: not served(connection))

        here.upstream.planned.append(endless)
        here.leave(orjson.dumps({**CHAT, "stream": True}), given_up)


def test_a_client_that_does_not_read_a_long_answer_stays_a_visitor_for_its_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = {"data": [{"embedding": "x" * LONG}]}
    with setting() as here:
        here.upstream.planned.append(answered(answer))
        assert here.http.post("/embeddings", content=EMBEDDINGS).json() == answer
        timeout = here.world.gateway.settings.serve.timeout
        monkeypatch.setattr("serve.gateway.app.READ_SECONDS", -timeout)
        monkeypatch.setattr("serve.gateway.client.LEAST_BYTES", LONG)

        def given_up(connection: socket.socket) -> None:
            begun = connection.recv(1)
            assert not is_empty(here.world.gateway.admission)
            assert served(connection)
            here.idle()
            until(lambda: not served(connection))
            while more := connection.recv(2**20):
                begun += more
            assert len(begun) < LONG

        here.upstream.planned.append(answered(answer))
        here.leave(EMBEDDINGS, given_up, "/v1/embeddings")


def test_a_request_whose_time_is_over_before_its_turn_is_turned_away() -> None:
    tasks = {"quick": {"max_tokens": 1, "timeout": 0.2}}
    with setting(admission={"in_flight": 1}, tasks=tasks) as here:
        here.upstream.planned.append(silence)

        def second(_: socket.socket) -> None:
            here.upstream.wait_arrived()
            answer = here.http.post(
                "/chat/completions", json=CHAT, headers={"x-fupan-task": "quick"}
            )
            assert error(answer) == (503, "gateway_overloaded")

        here.leave(orjson.dumps(CHAT), second)
        here.idle()
        assert here.upstream.calls == 1


def test_who_is_here_when_the_gateway_is_about_to_end_is_answered() -> None:
    with setting() as here:
        answers: list[httpx.Response] = []
        release = threading.Event()

        async def held(_: web.Request) -> web.StreamResponse:
            await asyncio.to_thread(release.wait, SECONDS)
            return web.json_response(completion("Still."))

        here.upstream.planned.append(held)
        asking = threading.Thread(target=lambda: answers.append(here.post()))
        asking.start()
        here.upstream.wait_arrived()
        here.world.gateway.drain()
        with httpx.Client(base_url=here.world.base_url) as late:
            assert error(late.post("/chat/completions", json=CHAT)) == (503, "gateway_draining")
        release.set()
        asking.join(SECONDS)
        assert answers[0].json()["choices"][0]["message"]["content"] == "Still."


def test_clients_that_leave_take_nobody_elses_turn_with_them() -> None:
    with setting(admission={"in_flight": 1}) as here:
        release = threading.Event()

        async def held(_: web.Request) -> web.StreamResponse:
            await asyncio.to_thread(release.wait, SECONDS)
            return web.json_response(completion("First."))

        here.upstream.planned.append(held)
        answers: list[httpx.Response] = []
        waiting = [
            threading.Thread(target=lambda: answers.append(here.post(n=1))) for _ in range(2)
        ]
        waiting[0].start()
        here.upstream.wait_arrived()
        here.leave(orjson.dumps(CHAT), lambda _: wait_waiting(here, 1))
        waiting[1].start()
        wait_waiting(here, 1)
        release.set()
        for thread in waiting:
            thread.join(SECONDS)
        assert [answer.status_code for answer in answers] == [200, 200]
        here.idle()


def served(connection: socket.socket) -> bool:
    """Whether the gateway's end of a connection is open still, whatever it holds."""
    ends = [connection.getpeername()[1], connection.getsockname()[1]]
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, here, there, state, *_ = line.split()
        if [int(end.rpartition(":")[2], 16) for end in (here, there)] == ends:
            return state == "01"  # established
    return False


def wait_waiting(here: Setting, count: int) -> None:
    until(lambda: here.world.gateway.admission.waiting == count)


def until(holds: Any) -> None:
    """Wait for what no event tells of."""
    pause = threading.Event()
    for _ in range(12_000):
        if holds():
            return
        pause.wait(0.005)
    raise AssertionError("it never happened")
