"""The routes of the gateway as an ASGI application.

The endpoints are ASGI themselves, not functions of FastAPI: they see the client leave, send events
unbuffered, and cost a third of the time. Invariant: whatever is asked of whatever path, the answer
is the endpoint's or an error in OpenAI's form, and it carries the request's id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from serve.gateway.admission import Visit
from serve.gateway.client import JSON, Client, ClientGone
from serve.gateway.contract import Answer, Answered, Target, Whole
from serve.gateway.errors import GatewayError, UnknownUrl, WrongMethod
from serve.gateway.gateway import Gateway
from serve.gateway.names import Entry
from serve.gateway.openapi import document
from serve.gateway.request import request_id
from serve.gateway.searching import Searching
from serve.metrics import Metrics
from serve.metrics.prometheus import CONTENT_TYPE

VERSION = version("fupan")
READ_SECONDS = 2.0
"""Which a client has to take the rest of an answer when the time of its request is over: one that
does not read would hold its turn for ever."""
_SHOWN = 200
"""Characters of a path in an error about it."""
_LOG = logging.getLogger(__name__)

_Ask = Callable[[Client, Visit], Awaitable[Answer]]
_Tell = Callable[[Client, Mapping[str, str]], bytes]


def build_app(gateway: Gateway) -> FastAPI:
    """The application that serves `gateway`, which is started and closed with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.aclose()

    asked = {
        f"/v1/{name}": _Asked(gateway, name, ask)
        for name, ask in (
            ("chat/completions", gateway.chat),
            ("embeddings", gateway.embeddings),
            ("analyze", gateway.analyze),
        )
    }
    if gateway.searching is not None:
        asked["/v1/search"] = _Asked(gateway, "search", gateway.searching.search)
    routes: list[BaseRoute] = [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in asked.items()),
        *(
            Route(path, _Told(gateway, tell), methods=["GET"])
            for path, tell in (
                ("/v1/models", _models(gateway)),
                ("/v1/models/{name:path}", _model(gateway)),
                ("/healthz", _health),
                ("/readyz", _ready(gateway)),
                ("/openapi.json", _document(gateway)),
            )
        ),
    ]
    if gateway.searching is not None:
        reported = _Reported(gateway, gateway.searching)
        for path in ("/v1/reports", "/v1/reports/{run}", "/v1/reports/{run}/{file}"):
            routes.append(Route(path, reported, methods=["GET"]))
    if gateway.metrics is not None:
        routes.append(Route("/metrics", _Measured(gateway, gateway.metrics), methods=["GET"]))
    return _Application(
        asked,
        title="fupan",
        version=VERSION,
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refuse},
        # Both pages load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )


class _Application(FastAPI):
    """FastAPI, passed by where a model is asked: its middleware and its router would take a tenth
    of the time of such a request, and do nothing for it."""

    def __init__(self, asked: Mapping[str, _Asked], **options: Any) -> None:
        super().__init__(**options)
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] == "http" and scope["method"] == "POST":
            endpoint = self._asked.get(scope["path"])
            if endpoint is not None:
                await endpoint(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


class _Endpoint:
    """What all endpoints share: however it ends, there is one answer."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(Client(scope, receive, send, self._gateway.clock()), scope)

    async def serve(self, client: Client, scope: Scope) -> None:
        """Answer `client`, whatever happens, for as long as it is there."""
        try:
            await self.answer(client, scope)
        except ClientGone:
            pass
        except asyncio.CancelledError:
            if not client.left():
                raise
        except Exception as error:
            if not isinstance(error, GatewayError):
                _LOG.exception("request %s failed", client.id)
                error = GatewayError("The gateway failed. Its log says why.")
            if client.status is not None:
                raise  # the answer has begun: the server ends the connection
            await client.send_error(error)
        finally:
            client.close()

    async def answer(self, client: Client, scope: Scope) -> None:
        """Answer `client`, or raise."""
        raise NotImplementedError


class _Observed(_Endpoint):
    """What is measured, under a name."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__(gateway)
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = Client(scope, receive, send, self._gateway.clock())
        try:
            await self.serve(client, scope)
        finally:
            self._gateway.observe(self._name, client)


class _Asked(_Observed):
    """What a provider is asked for, or the search."""

    def __init__(self, gateway: Gateway, name: str, ask: _Ask) -> None:
        super().__init__(gateway, name)
        self._ask = ask

    async def answer(self, client: Client, scope: Scope) -> None:
        with self._gateway.visit() as visit:
            answer = await self._ask(client, visit)
            client.about = answer.about
            left = self._gateway.seconds_left(client) + READ_SECONDS
            if isinstance(answer, Whole):
                await client.send(200, answer.body, [JSON, *_marks(answer.about)], left)
                return
            try:
                await client.send_stream(answer, _marks(answer.about), left)
            finally:
                await answer.aclose()


class _Told(_Endpoint):
    """What the gateway knows itself."""

    def __init__(self, gateway: Gateway, tell: _Tell) -> None:
        super().__init__(gateway)
        self._tell = tell

    async def answer(self, client: Client, scope: Scope) -> None:
        await client.send(200, self._tell(client, scope["path_params"]), [JSON])


class _Reported(_Observed):
    """What runs have left."""

    def __init__(self, gateway: Gateway, searching: Searching) -> None:
        super().__init__(gateway, "reports")
        self._searching = searching

    async def answer(self, client: Client, scope: Scope) -> None:
        path: Mapping[str, str] = scope["path_params"]
        with self._gateway.visit() as visit:
            await visit.read(client.headers, client.body())
            if "run" not in path:
                await self._searching.reports(client)
                return
            await self._searching.file(client, path["run"], path.get("file"))


class _Measured(_Endpoint):
    """What was measured."""

    def __init__(self, gateway: Gateway, metrics: Metrics) -> None:
        super().__init__(gateway)
        self._metrics = metrics

    async def answer(self, client: Client, scope: Scope) -> None:
        await client.send(200, await self._metrics.render(), [(b"content-type", CONTENT_TYPE)])


def _marks(about: Answered) -> list[tuple[bytes, bytes]]:
    """Who answered, out of which cache, for how much. What a stream costs is not known when it
    begins, unless it is kept."""
    marks = [(b"x-fupan-cache", about.cache.encode())]
    if about.target is not None:
        marks.append((b"x-fupan-model", _name_of(about.target)))
    if about.cost is not None:
        marks.append((b"x-fupan-cost", f"{about.cost:f} {about.currency or ''}".strip().encode()))
    return marks


@lru_cache(maxsize=1024)
def _name_of(target: Target) -> bytes:
    return quote(str(target), safe="/:@+-._").encode()


def _models(gateway: Gateway) -> _Tell:
    def tell(client: Client, _: Mapping[str, str]) -> bytes:
        data = [_entry(entry) for entry in gateway.models(client)]
        return orjson.dumps({"object": "list", "data": data})

    return tell


def _model(gateway: Gateway) -> _Tell:
    def tell(client: Client, path: Mapping[str, str]) -> bytes:
        return orjson.dumps(_entry(gateway.model(client, path["name"])))

    return tell


def _entry(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "object": "model", "created": 0, "owned_by": entry.owned_by}


def _health(_: Client, __: Mapping[str, str]) -> bytes:
    return orjson.dumps({"status": "ok", "version": VERSION})


def _ready(gateway: Gateway) -> _Tell:
    def tell(_: Client, __: Mapping[str, str]) -> bytes:
        gateway.check_ready()
        return orjson.dumps({"status": "ready"})

    return tell


def _document(gateway: Gateway) -> _Tell:
    told = orjson.dumps(
        document(VERSION, gateway.settings.serve.metrics, gateway.searching is not None)
    )
    return lambda _, __: told


async def _refuse(request: Request, error: Exception) -> Response:
    """What the router refuses: an unknown path, another method."""
    other_method = isinstance(error, HTTPException) and error.status_code == 405
    headers = dict(getattr(error, "headers", None) or {})
    headers["x-request-id"] = request_id(request.headers.get("x-request-id"))
    if "Allow" in headers:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    if other_method and request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    kind = WrongMethod if other_method else UnknownUrl
    where = f"{request.method} {request.url.path}"[:_SHOWN]
    what = "That path has other methods" if other_method else "Invalid URL"
    refused = kind(f"{what} ({where}): GET /openapi.json lists what there is.")
    return Response(refused.json(), refused.status, headers, media_type="application/json")
