"""What a client sees when a provider fails, and what a provider sees when a client leaves."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web

from serve.ask.limiter_host import InProcessPermits
from serve.ask.permit import Limits
from serve.ask.settings import Provider
from serve.gateway.build import build_gateway
from serve.gateway.contract import Answered, Stream
from serve.gateway.gateway import Gateway
from serve.gateway.settings import GatewaySettings
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    chunk,
    completion,
    cut_off,
    refused,
    silence,
    streamed,
    upstream_world,
)

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Say hello."}]}
EMBEDDINGS = orjson.dumps({"model": "simulated", "input": "x"})
LONG = 12 * 2**20
"""Bytes of an answer that no kernel buffers for one who does not read."""
_SECONDS = 10.0


class Setting:
    """A gateway whose permits can be looked at, in front of a scripted provider."""

    def __init__(self, world: World, upstream: Upstream, permits: list[InProcessPermits]) -> None:
        self.world = world
        self.upstream = upstream
        self._permits = permits
        self.http = httpx.Client(base_url=world.base_url, timeout=_SECONDS)

    def post(self, **body: Any) -> httpx.Response:
        return self.http.post("/chat/completions", json={**CHAT, **body})

    def leave(self, body: bytes, after: Any, path: str = "/v1/chat/completions") -> None:
        """Send a request by hand, wait for `after`, and end the connection."""
        with self.connected() as connection:
            connection.sendall(head(len(body), path) + body)
            after(connection)

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        port = int(self.world.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
            yield connection

    def forget_failures(self) -> None:
        """Let the limiters begin anew, with closed breakers."""

        async def renew() -> None:
            for each in self._permits:
                each.__init__(Limits())  # type: ignore[misc]

        self.world.run(renew())

    def in_use(self) -> int:
        """Permits that are out, once everything that was told to the limiter has arrived."""

        async def look() -> int:
            await asyncio.sleep(0)
            return sum([(await each.stats()).in_use for each in self._permits])

        return self.world.run(look())

    def idle_after(self, arrived: Callable[[], None]) -> None:
        """See that nothing is held some time after a request has arrived."""
        arrived()
        self.idle()

    def idle(self) -> None:
        """Wait until nobody is here any more, then see that nothing is held."""
        admission = self.world.gateway.admission

        async def empty() -> tuple[int, int]:
            await asyncio.wait_for(admission.drained(), _SECONDS)
            return admission.in_flight, admission.waiting

        assert self.world.run(empty()) == (0, 0)
        assert self.in_use() == 0


def head(length: int, path: str = "/v1/chat/completions") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "host: gateway",
        "content-type: application/json",
        f"content-length: {length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@contextmanager
def setting(provider: dict[str, Any] | None = None, **serve: Any) -> Iterator[Setting]:
    permits: list[InProcessPermits] = []

    def permits_of(provider: Provider) -> InProcessPermits:
        permits.append(InProcessPermits(provider.limits.to_limits()))
        return permits[-1]

    def build(settings: GatewaySettings) -> Gateway:
        return build_gateway(settings, permits=permits_of)

    with upstream_world() as upstream:
        main = provider_at(upstream.url, **(provider or {}))
        with gateway_world({"main": main}, serve, build) as world:
            yield Setting(world, upstream, permits)


@pytest.fixture(scope="module")
def shared() -> Iterator[Setting]:
    with setting() as made:
        yield made


@pytest.fixture
def here(shared: Setting) -> Iterator[Setting]:
    shared.upstream.planned.clear()
    shared.forget_failures()
    yield shared
    shared.idle()


def error(answer: httpx.Response) -> tuple[int, str]:
    told = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]
    return answer.status_code, told["code"]


# A provider that fails.


@pytest.mark.parametrize("stream", [False, True])
def test_nobody_at_the_providers_url(stream: bool) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with gateway_world({"main": url}, {"timeout": 0.4}) as world:
            body = {**CHAT, "stream": stream}
            answer = httpx.post(f"{world.base_url}/chat/completions", json=body)
    assert error(answer) == (503, "provider_unavailable")


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_is_too_slow(stream: bool) -> None:
    with setting(timeout=0.5) as here:
        here.upstream.planned.append(silence)
        assert error(here.post(stream=stream)) == (504, "provider_timed_out")
        here.upstream.wait_left()
        here.idle()


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_event_has_its_status(here: Setting, stream: bool) -> None:
    here.upstream.planned.append(refused(400, "no such voice", "bad_voice"))
    assert error(here.post(stream=stream)) == (400, "bad_voice")


@pytest.mark.parametrize(
    "garbage", [b"<html>oops</html>", b"", b'{"choices": "none"}', b"[1, 2]", b"\xff\xfe"]
)
def test_garbage_is_no_answer(here: Setting, garbage: bytes) -> None:
    here.upstream.planned.append(answered(garbage))
    assert error(here.post()) == (502, "provider_failed")


def test_a_stream_of_garbage(here: Setting) -> None:
    async def garbage(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"data: <oops>\n\n", content_type="text/event-stream")

    here.upstream.planned.append(garbage)
    assert error(here.post(stream=True)) == (502, "provider_failed")


def events(answer: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


def test_a_stream_that_is_cut_ends_with_an_error_and_not_as_if_it_were_whole(
    here: Setting,
) -> None:
    here.upstream.planned.append(streamed([chunk({"content": "Hel"})], then=cut_off, done=False))
    answer = here.post(stream=True)
    first, last = events(answer)
    assert answer.status_code == 200
    assert first["choices"][0]["delta"]["content"] == "Hel"
    assert last["error"]["type"] == "server_error"


def test_a_stream_that_ends_without_its_end(here: Setting) -> None:
    here.upstream.planned.append(streamed([chunk({"content": "Hel"})], done=False))
    assert "error" in events(here.post(stream=True))[-1]


def test_garbage_in_the_middle_of_a_stream(here: Setting) -> None:
    async def garbage(request: web.Request) -> web.StreamResponse:
        said = b"data: " + orjson.dumps(chunk({"content": "Hel"})) + b"\n\ndata: {oops\n\n"
        return web.Response(body=said, content_type="text/event-stream")

    here.upstream.planned.append(garbage)
    assert "error" in events(here.post(stream=True))[-1]


def test_a_failure_is_asked_again_and_the_client_sees_nothing_of_it(here: Setting) -> None:
    here.upstream.planned.extend([refused(500, "oops"), answered(completion("Again."))])
    assert here.post().json()["choices"][0]["message"]["content"] == "Again."


def test_an_unexpected_error_of_the_gateway_is_told_as_every_other(
    here: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(here.world.gateway._upstream, "ask", broken)
    answer = here.post()
    assert error(answer) == (500, "internal_error")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_a_stream_that_fails_in_the_gateway_is_not_ended_as_if_it_were_whole(
    here: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b'data: {"choices": []}\n\n'
        raise ZeroDivisionError

    async def broken(*_: Any) -> Stream:
        return Stream(events(), Answered())

    monkeypatch.setattr(here.world.gateway._upstream, "ask", broken)
    with pytest.raises(httpx.RemoteProtocolError):
        here.post(stream=True)


# A client that leaves.


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
    monkeypatch.setattr("serve.gateway.app.READ_SECONDS", 0.2)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        said = b"data: " + orjson.dumps(chunk({"content": "x" * 4096})) + b"\n\n"
        while True:
            await response.write(said)

    with setting(timeout=0.5) as here:

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
        monkeypatch.setattr("serve.gateway.client.LEAST_BYTES", LONG * 4)

        def given_up(connection: socket.socket) -> None:
            begun = connection.recv(1)
            visits = here.world.gateway.admission.drained()
            with pytest.raises(TimeoutError):
                here.world.run(asyncio.wait_for(visits, 0.05))
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
            await asyncio.to_thread(release.wait, _SECONDS)
            return web.json_response(completion("Still."))

        here.upstream.planned.append(held)
        asking = threading.Thread(target=lambda: answers.append(here.post()))
        asking.start()
        here.upstream.wait_arrived()
        here.world.gateway.drain()
        with httpx.Client(base_url=here.world.base_url) as late:
            assert error(late.post("/chat/completions", json=CHAT)) == (503, "gateway_draining")
        release.set()
        asking.join(_SECONDS)
        assert answers[0].json()["choices"][0]["message"]["content"] == "Still."


def test_clients_that_leave_take_nobody_elses_turn_with_them() -> None:
    with setting(admission={"in_flight": 1}) as here:
        release = threading.Event()

        async def held(_: web.Request) -> web.StreamResponse:
            await asyncio.to_thread(release.wait, _SECONDS)
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
            thread.join(_SECONDS)
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
    for _ in range(1000):
        if holds():
            return
        pause.wait(0.005)
    raise AssertionError("it never happened")
