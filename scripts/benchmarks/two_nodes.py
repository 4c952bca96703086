"""A Ray cluster of two nodes on this machine, as `cluster.yaml` makes them elsewhere: a head
without work, whose dashboard takes jobs, and a node that works.

Invariant: when TwoNodes is left, none of the processes it started is alive.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

HOST = "127.0.0.1"
STORE_BYTES = 256 * 2**20
"""Of each node's object store."""
START_SECONDS = 240.0
END_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_APART = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
"""Runs a command that sees an empty folder in place of the one that is named next."""


class TwoNodes:
    """A context manager. `environment`: what the nodes have beside this process's own, such as the
    provider's key. `cpus`: of the node that works. `hidden`: a folder of which that node sees none
    of the files, as one that the nodes do not share (needs `can_hide`)."""

    def __init__(
        self, environment: Mapping[str, str], cpus: int = 2, hidden: Path | None = None
    ) -> None:
        self._environment = environment
        self._cpus = cpus
        self._hidden = hidden
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()
        self.folder: Path
        """Ray's own files; a short path, since Ray's sockets lie below it."""
        self.address: str
        """Where jobs are sent."""

    @property
    def token_file(self) -> Path:
        """The token without which nobody is let in."""
        return self.folder / "token"

    def files(self) -> list[Path]:
        """Everything that Ray has written: logs, descriptions of jobs, uploaded archives."""
        return [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="fupan-ray-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The head last and by itself: a node that leaves asks it for leave, for up to 30 s.
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._stack.close()

    def _start(self) -> None:
        self.token_file.write_text(secrets.token_hex(32))
        self.token_file.chmod(0o600)
        gcs, dashboard, client = (_free_port() for _ in range(3))
        self.address = f"http://{HOST}:{dashboard}"
        self._node(
            *("--head", f"--port={gcs}", "--num-cpus=0", f"--temp-dir={self.folder / 'r'}"),
            *(f"--dashboard-host={HOST}", f"--dashboard-port={dashboard}"),
            f"--ray-client-server-port={client}",
        )
        self._wait_for(1)
        apart = () if self._hidden is None else (*_APART, str(self._hidden))
        self._node(f"--address={HOST}:{gcs}", f"--num-cpus={self._cpus}", before=apart)
        self._wait_for(2)

    def _node(self, *arguments: str, before: Sequence[str] = ()) -> None:
        binaries = Path(sys.executable).parent
        environment = {**os.environ, **self._environment} | {
            # What a job calls python must be the one that has everything installed.
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            # On a busy machine the usual half minute is not enough.
            "RAY_raylet_start_wait_time_s": f"{START_SECONDS:.0f}",
            # Else a node waits half a minute for the detached limiter to go.
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
        }
        environment.pop("RAY_ADDRESS", None)
        number = len(self._processes)
        with (self.folder / f"node-{number}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [
                        *(*before, str(binaries / "ray"), "start", "--block", *arguments),
                        *(f"--node-ip-address={HOST}", f"--object-store-memory={STORE_BYTES}"),
                        f"--dashboard-agent-listen-port={_free_port()}",
                        *("--min-worker-port=0", "--max-worker-port=0"),
                    ],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for(self, nodes: int) -> None:
        """Raises RuntimeError where so many nodes are not there in time."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and all(p.poll() is None for p in self._processes):
            if self._alive() >= nodes:
                return
            time.sleep(_LOOK_SECONDS)
        logs = "\n".join(path.read_text()[-2000:] for path in self.folder.glob("node-*.log"))
        raise RuntimeError(f"the cluster did not start: {logs}")

    def _alive(self) -> int:
        headers = {"authorization": f"Bearer {self.token_file.read_text()}"}
        try:
            answer = httpx.get(f"{self.address}/nodes?view=summary", headers=headers, timeout=10.0)
            found = answer.raise_for_status().json()["data"]["summary"]
        except (httpx.HTTPError, ValueError, KeyError):
            return 0
        return sum(node.get("raylet", {}).get("state") == "ALIVE" for node in found)


def can_hide() -> bool:
    """Whether this user may give a process a file system of its own."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run((*_APART, folder, "true"), capture_output=True).returncode == 0
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
