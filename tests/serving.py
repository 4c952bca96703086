"""An aiohttp application on a real port, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from aiohttp import web

_SECONDS = 60.0


@contextmanager
def serving(application: web.Application, handler_cancellation: bool = False) -> Iterator[str]:
    """`http://127.0.0.1:PORT`, for as long as the block lasts. `handler_cancellation`: whether a
    handler is cancelled when its client leaves."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(
        application, shutdown_timeout=0.1, handler_cancellation=handler_cancellation
    )

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(start(), loop).result(timeout=_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(timeout=_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=_SECONDS)
        loop.close()
