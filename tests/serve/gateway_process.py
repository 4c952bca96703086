"""`fupan serve` as a process, and clients that load it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import orjson
import psutil

from tests.serve.slow_provider import MODEL

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 120.0


@dataclass(frozen=True)
class Process:
    """A gateway that answers. `url`: of OpenAI's protocol; `said`: what it printed; `errors`: where
    it writes its warnings and how it ends."""

    process: subprocess.Popen[str]
    url: str
    cluster: str
    said: str
    errors: Path

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    def end(self) -> int:
        """Its exit code, once it was told to end."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_SECONDS)

    def replicas(self) -> list[psutil.Process]:
        """The processes of the gateway's replicas."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [each for each in children if _is_replica(each)]


def _is_replica(process: psutil.Process) -> bool:
    try:
        return "ray::ServeReplica:fupan-gateway:Gateway" in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False


@contextmanager
def gateway_process(
    config: Mapping[str, Any], folder: Path, *flags: str, **environment: str
) -> Iterator[Process]:
    """`fupan serve` with `config` as its fupan.yaml, at a free port; ended at the end."""
    file = folder / "fupan.yaml"
    file.write_bytes(orjson.dumps(config))
    command = [sys.executable, "-m", "job", "serve", "--config", str(file), "--port", "0", *flags]
    errors = folder / "errors.txt"
    with errors.open("w") as written:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        )
    try:
        said = "".join(_until(process, "share its limits"))
        found = re.search(r"gateway at (\S+)", said), re.search(r"RAY_ADDRESS=(\S+)", said)
        assert found[0], said
        assert found[1], said
        yield Process(process, found[0][1], found[1][1], said, errors)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(_SECONDS)


def _until(process: subprocess.Popen[str], last: str) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if line.startswith(last):
            return


@dataclass
class Seen:
    """What clients saw. `failed`: (status, what it said) of each request that was not answered to
    its end; a status of 0: the connection broke."""

    answered: int = 0
    failed: list[tuple[int, str]] = field(default_factory=list)


@contextmanager
def load(url: str, clients: int, seconds: float = 0.2) -> Iterator[Seen]:
    """So many clients, half of them with streams, that each ask again as soon as they are answered;
    each answer takes `seconds`. Those in flight at the end are waited for."""
    seen, stop = Seen(), Event()

    async def run() -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(timeout=300, limits=limits) as http:
            await asyncio.gather(*(_client(http, url, n % 2 == 0, seconds) for n in range(clients)))

    async def _client(http: httpx.AsyncClient, url: str, stream: bool, seconds: float) -> None:
        while not stop.is_set():
            said = await ask(http, url, f"wait {seconds}", stream)
            if said is None:
                seen.answered += 1
            else:
                seen.failed.append(said)

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


async def ask(
    http: httpx.AsyncClient, url: str, words: str, stream: bool = False
) -> tuple[int, str] | None:
    """None for an answer that is whole, else its status and what it said."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": words}], "stream": stream}
    try:
        answer = await http.post(f"{url}/chat/completions", json=body)
    except httpx.HTTPError as error:
        return 0, repr(error)
    whole = answer.text.endswith("data: [DONE]\n\n") if stream else '"done"' in answer.text
    return None if answer.status_code == 200 and whole else (answer.status_code, answer.text)


def wait_until(what: Any, seconds: float = 240.0) -> None:
    """Until `what()` is true."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, what
        time.sleep(0.05)
