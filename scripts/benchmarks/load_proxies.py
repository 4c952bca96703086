"""Two proxies as they are written first: one with a thread per request, one asynchronous. Both try
again three times, whatever went wrong, and know nothing of limits.

`python -m scripts.benchmarks.load_proxies '{"kind", "base_url", "port", "wait", "ready"}'` serves
until its input ends (see `Serving`); `wait`: seconds before each further try.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import aiohttp
import httpx
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

RETRIES = 3
_TIMEOUT_SECONDS = 30.0
_JSON = {"content-type": "application/json"}
_BAD_GATEWAY = 502


def _synchronous(url: str, port: int, wait: float, ready: Path) -> None:
    client = httpx.Client(timeout=_TIMEOUT_SECONDS, limits=httpx.Limits())

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, answer = _ask(client, url, body, wait)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

    with Server(("127.0.0.1", port), Proxy) as server:
        _end_with_input(server.shutdown)
        ready.touch()
        server.serve_forever()


def _ask(client: httpx.Client, url: str, body: bytes, wait: float) -> tuple[int, bytes]:
    status, answer = _BAD_GATEWAY, b"{}"
    for attempt in range(1 + RETRIES):
        if attempt:
            time.sleep(wait)
        try:
            got = client.post(url, content=body, headers=_JSON)
        except httpx.HTTPError:
            continue
        status, answer = got.status_code, got.content
        if status == 200:
            break
    return status, answer


def _asynchronous(url: str, port: int, wait: float, ready: Path) -> None:
    app = FastAPI()
    sessions: list[aiohttp.ClientSession] = []

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        if not sessions:
            connector = aiohttp.TCPConnector(limit=0)
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
            sessions.append(aiohttp.ClientSession(connector=connector, timeout=timeout))
        status, answer = await _ask_later(sessions[0], url, await request.body(), wait)
        return Response(answer, status, media_type="application/json")

    server = uvicorn.Server(uvicorn.Config(app, access_log=False))

    def end() -> None:
        server.should_exit = True

    _end_with_input(end)
    with socket.create_server(("127.0.0.1", port), backlog=512) as listening:
        ready.touch()
        server.run(sockets=[listening])


async def _ask_later(
    session: aiohttp.ClientSession, url: str, body: bytes, wait: float
) -> tuple[int, bytes]:
    status, answer = _BAD_GATEWAY, b"{}"
    for attempt in range(1 + RETRIES):
        if attempt:
            await asyncio.sleep(wait)
        try:
            async with session.post(url, data=body, headers=_JSON) as got:
                status, answer = got.status, await got.read()
        except (aiohttp.ClientError, TimeoutError):
            continue
        if status == 200:
            break
    return status, answer


def _end_with_input(end: Callable[[], None]) -> None:
    def wait() -> None:
        sys.stdin.read()
        end()

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Serve."""
    told = orjson.loads(sys.argv[1])
    kind = {"synchronous": _synchronous, "asynchronous": _asynchronous}[told["kind"]]
    kind(f"{told['base_url']}/chat/completions", told["port"], told["wait"], Path(told["ready"]))


if __name__ == "__main__":
    main()
