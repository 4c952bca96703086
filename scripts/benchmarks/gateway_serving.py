"""Servers under measurement in a process of their own: a Ray cluster with applications on one of
Ray Serve's two ingresses.

Invariant: when Serving is left, every process that it was seen to have is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import orjson

from scripts.benchmarks.gateway_upstream import HOST, free_port
from scripts.benchmarks.memory import alive, process_tree
from scripts.benchmarks.workload import environment

Ingress = Literal["default", "fast"]

BARE = "bare"
"""The application that only passes on, and where it is."""
GATEWAY = "fupan-gateway"
"""The gateway's: that of serve/app.py, which is not imported here since Ray is slow to import."""
_ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {
    "PYTHONPATH": str(_ROOT),
    "RAY_USAGE_STATS_ENABLED": "0",
    # On a busy machine Ray's own 30 s, and Serve's 5 s for HAProxy, are not enough.
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
}
_START_SECONDS = 240.0
_END_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_TAIL = 3000
"""Characters of a log that are shown."""


def ingress_environment(ingress: Ingress) -> dict[str, str]:
    """What the processes of the cluster are told. The fast ingress is HAProxy in place of Serve's
    proxy in Python, with user code on the replica's own loop and buffered logs (the flags are those
    of ray/serve/_private/constants.py in Ray 2.60)."""
    if ingress == "default":
        return {}
    return {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        # Two listeners of HAProxy on all interfaces that cannot be turned off.
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
    }


class Serving:
    """A context manager: `python -m MODULE` with `told` as JSON, to which are added the `port` on
    which it serves until its input ends, and `ready`, a file that it makes when it does.
    `environment`: beside this process's own."""

    def __init__(
        self,
        module: str,
        told: Mapping[str, object],
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._module = module
        self._folder = folder
        self._environment = environment
        self.port = free_port()
        self._ready = folder / "ready"
        self._told = {**told, "port": self.port, "ready": str(self._ready)}
        self._process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The root of the processes that serve."""
        return self._process.pid

    @property
    def said(self) -> str:
        """What it wrote into `ready`."""
        return self._ready.read_text()

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "serving.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, orjson.dumps(self._told).decode()],
                cwd=_ROOT,
                env={**environment(), **_ENVIRONMENT, **self._environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_ready(log)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait_until_ready(self, log: Path) -> None:
        """Raises RuntimeError where it ends before it serves, or does not in time."""
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._ready.exists():
                return
            time.sleep(_LOOK_SECONDS)
        raise RuntimeError(f"{self._module} did not start: {log.read_text()[-_TAIL:]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seen = process_tree(self._process.pid)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pid in alive(seen):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
