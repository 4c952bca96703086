"""A simulated model provider on a real port, for tests, benchmarks and users.

It speaks OpenAI's protocol for chat completions and embeddings, with the latency, limits and faults
of a real provider as far as `Settings` asks for them, and knows the right answers where it is given
a truth file. See `docs/simulated.md`.

Invariant: nothing but what `Engine` decided is sent in answer to a completion, and it is counted as
delivered when, and only when, all of it was handed over.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from serve.ask.tokens import count
from serve.simulated_account import Account
from serve.simulated_engine import Engine
from serve.simulated_faults import seeded_schedule
from serve.simulated_limits import Clock
from serve.simulated_protocol import ApiError
from serve.simulated_settings import FaultKind, Settings
from serve.simulated_truth import Truth, load_truth
from serve.simulated_verdict import Verdict

__all__ = [
    "FaultKind",
    "Settings",
    "SimulatedProvider",
    "Truth",
    "build_app",
    "load_truth",
    "seeded_schedule",
    "serve_forever",
]

LOOPBACK = "127.0.0.1"
_MOST_BODY = 64 * 2**20
"""Bytes a request may have: more than any model's context."""
_SHUTDOWN_SECONDS = 0.2
"""What calls in flight are given at the end: hanging ones would never finish."""
_THREAD_SECONDS = 30.0
"""How long the server's thread may take to start, to answer or to end."""


Decide = Callable[[str | None, bytes, float], Verdict]


def _json(body: object, status: int = 200) -> web.Response:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return web.Response(body=raw, status=status, content_type="application/json")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "simulated"}


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal, also of an unknown URL or method, in the protocol's form."""
    try:
        return await handler(request)
    except ApiError as error:
        return _json(error.body(), error.status)
    except web.HTTPException as error:
        message = f"{error.reason}: {request.method} {request.path}."
        return _json(ApiError(error.status, message).body(), error.status)


def _close(request: web.Request, *, reset: bool) -> None:
    """End the connection, by a TCP reset or in order."""
    transport = request.transport
    if transport is None:
        return
    if reset:
        lingering: socket.socket = transport.get_extra_info("socket")
        lingering.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


class _Provider:
    """The handlers of one application and the state they share."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = Clock(settings.time_scale)
        self._engine = Engine(settings, self._clock)
        self._account = Account(settings.prices, bill_lost=settings.bill_lost)
        count("")  # loads its table: 0.15 s that the first request would wait for

    def app(self) -> web.Application:
        """The application that serves this provider."""
        app = web.Application(client_max_size=_MOST_BODY, middlewares=[_errors_as_json])
        app.router.add_post("/v1/chat/completions", partial(self._post, self._engine.decide))
        app.router.add_post("/v1/embeddings", partial(self._post, self._engine.decide_embeddings))
        app.router.add_get("/v1/models", self._get_models)
        app.router.add_get("/v1/models/{model}", self._get_model)
        app.router.add_get("/stats", self._get_stats)
        app.cleanup_ctx.append(self._keep_log)
        return app

    def stats(self) -> dict[str, Any]:
        """What `/stats` answers."""
        return {
            **self._account.snapshot(),
            "admitted": self._engine.admitted,
            "pending_faults": self._engine.pending_faults(),
        }

    async def _keep_log(self, _: web.Application) -> AsyncIterator[None]:
        """Keep the request log open for as long as the application runs."""
        if self._settings.log is None:
            yield
            return
        with self._settings.log.open("ab", buffering=0) as self._account.log:
            yield
        self._account.log = None

    async def _get_stats(self, _: web.Request) -> web.StreamResponse:
        return _json(self.stats())

    async def _get_models(self, request: web.Request) -> web.StreamResponse:
        self._engine.check_key(request.headers.get("Authorization"))
        data = [_model(name) for name in self._settings.models]
        return _json({"object": "list", "data": data})

    async def _get_model(self, request: web.Request) -> web.StreamResponse:
        self._engine.check_key(request.headers.get("Authorization"))
        name = request.match_info["model"]
        self._engine.check_model(name)
        return _json(_model(name))

    async def _post(self, decide: Decide, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        start = self._clock.now()
        number = self._account.begin(body)
        verdict = decide(request.headers.get("Authorization"), body, start)
        verdict.headers["x-request-id"] = f"req_{number:08d}"
        delivered = False
        try:
            await self._clock.sleep(verdict.delay)
            response = await self._deliver(request, verdict)
            delivered = verdict.status is not None
        finally:
            now = self._clock.now()
            self._engine.settle(verdict, now)
            self._account.end(number, body, verdict, delivered, start, now)
        return response

    async def _deliver(self, request: web.Request, verdict: Verdict) -> web.StreamResponse:
        """Send what was decided, to its last byte."""
        response = web.StreamResponse(status=verdict.status or 200, headers=verdict.headers)
        response.content_type = verdict.content_type
        if verdict.manner == "hang":
            await self._clock.sleep(self._settings.hang_seconds)
        if verdict.manner in ("hang", "close", "reset"):
            _close(request, reset=verdict.manner == "reset")
            return response
        if verdict.manner != "stream":
            response.content_length = len(verdict.body)
        await response.prepare(request)
        if verdict.manner == "partial":
            await response.write(verdict.body[: len(verdict.body) // 2])
            _close(request, reset=False)
            return response
        for event in verdict.events or (verdict.body,):
            await self._clock.sleep(verdict.pause)
            await response.write(event)
        await response.write_eof()
        return response


def build_app(settings: Settings) -> web.Application:
    """The simulated provider as an aiohttp application."""
    return _Provider(settings).app()


def serve_forever(
    settings: Settings,
    host: str = LOOPBACK,
    port: int = 8009,
    listening: Callable[[], None] = lambda: None,
) -> None:
    """Serve at `http://HOST:PORT/v1` until interrupted; `listening` is called once it is there.
    Raises OSError where the port is taken or the log cannot be written."""
    web.run_app(
        build_app(settings),
        host=host,
        port=port,
        access_log=None,
        print=lambda _: listening(),
        shutdown_timeout=_SHUTDOWN_SECONDS,
        handler_cancellation=True,
    )


class SimulatedProvider:
    """A context manager: the provider on a free loopback port, in a thread of its own.

    The figures stay readable after it has ended.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._provider = _Provider(settings or Settings())
        self._port: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="simulated-provider", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(timeout=_THREAD_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=_THREAD_SECONDS)

    @property
    def root_url(self) -> str:
        """Where `/stats` is."""
        return f"http://{LOOPBACK}:{self._port.result(timeout=0)}"

    @property
    def base_url(self) -> str:
        """The base of the protocol's URLs, `http://127.0.0.1:PORT/v1`."""
        return f"{self.root_url}/v1"

    def stats(self) -> dict[str, Any]:
        """The figures so far, as `/stats` gives them."""
        if not self._thread.is_alive():
            return self._provider.stats()
        snapshot: Future[dict[str, Any]] = Future()
        self._loop.call_soon_threadsafe(lambda: snapshot.set_result(self._provider.stats()))
        return snapshot.result(timeout=_THREAD_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._port.done():
                raise
            self._port.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(
            self._provider.app(),
            access_log=None,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            handler_cancellation=True,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, 0)
            await site.start()
            self._port.set_result(runner.addresses[0][1])
            await self._stop.wait()
        finally:
            await runner.cleanup()
