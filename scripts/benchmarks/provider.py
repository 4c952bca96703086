"""`fupan simulate` in a process of its own, so that it does not share the clock or the memory of
what is measured."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import orjson

from serve.simulated import Settings

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60.0
_END_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class Provider:
    """A context manager: a fresh simulated provider on a loopback port, a free one by default."""

    def __init__(self, settings: Settings, port: int = 0) -> None:
        self._settings = settings
        self._port = port
        self._process: subprocess.Popen[bytes]
        self.base_url: str
        """The base of the protocol's URLs."""

    def __enter__(self) -> Self:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(self._settings.model_dump_json().encode())
            file.flush()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "job", "simulate"),
                    *("--port", str(self._port), "--settings", file.name),
                ],
                cwd=_ROOT,
                stderr=subprocess.PIPE,
            )
            try:
                self._wait_until_it_answers()
            except BaseException:
                self._process.kill()
                raise
        return self

    def _wait_until_it_answers(self) -> None:
        """Raises RuntimeError where the provider does not start."""
        if self._process.stderr is None:
            raise RuntimeError("the simulated provider has no stderr")
        said = self._process.stderr.readline().decode()
        self.base_url = said.strip().rpartition(" ")[2]
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                httpx.get(f"{self.base_url}/models").raise_for_status()
            except httpx.TransportError:
                time.sleep(_LOOK_SECONDS)
            else:
                return
        raise RuntimeError(f"the simulated provider did not start: {said}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=_END_SECONDS)

    def stats(self) -> dict[str, Any]:
        """What `/stats` says now."""
        url = self.base_url.removesuffix("/v1") + "/stats"
        return dict(httpx.get(url, timeout=30.0).raise_for_status().json())

    def log(self) -> list[dict[str, Any]]:
        """The request log so far, in the order in which the requests ended."""
        if self._settings.log is None or not self._settings.log.exists():
            return []
        return [orjson.loads(line) for line in self._settings.log.read_bytes().splitlines()]
