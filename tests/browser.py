"""A page as a person sees it: headless Chromium, driven over its own debugging protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*"),
)
_START_SECONDS = 120.0


@dataclass
class Page:
    """An open page. `requests`: URLs it asked for; `complaints`: what the console said."""

    _socket: aiohttp.ClientWebSocketResponse
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _number: int = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol and its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._next()
            if message.get("id") == self._number:
                return dict(message["result"])

    async def open(self, path: Path, width: int, dark: bool = False) -> None:
        """Show a file at a width in pixels, by day or by night, and wait until it is loaded."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        await self.call("Page.navigate", url=path.as_uri())
        while (await self._next()).get("method") != "Page.loadEventFired":
            pass

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._socket.receive_str(timeout=30))
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        return message


@asynccontextmanager
async def browser_page(profile: Path) -> AsyncIterator[Page]:
    """A page of a fresh browser whose profile is in `profile`; skipped where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium, which is not installed here")
    process = await asyncio.create_subprocess_exec(
        *(program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(profile, process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                targets = await answer.json()
            url = next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
            async with session.ws_connect(url, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()


async def _port(profile: Path, process: asyncio.subprocess.Process) -> int:
    """The port the browser writes down once it listens."""
    async with asyncio.timeout(_START_SECONDS):
        while process.returncode is None:
            if (port := _written_port(profile)) is not None:
                return port
            await asyncio.sleep(0.05)
    raise RuntimeError("the browser ended at once")


def _written_port(profile: Path) -> int | None:
    file = profile / "DevToolsActivePort"
    lines = file.read_text().split() if file.exists() else []
    return int(lines[0]) if lines else None
