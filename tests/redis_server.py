"""A real redis-server for tests: started, ended, started again with what it kept.

Invariant: only the process that was started here is ended, by its handle; it listens on a socket in
a folder of the test, and where a test wants one on a loopback port.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

READY_SECONDS = 60.0


class RedisServer:
    """A redis-server in `folder`, whose changes are on the disk before it replies."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, password: str | None = None
    ) -> None:
        self.folder = folder
        self.options = options
        self.port = port
        self.password = password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        """Its socket: short, since the system takes a hundred bytes."""
        return str(self.folder / "s")

    @property
    def url(self) -> str:
        """Where it is, without its password."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.socket}"

    def client(self) -> Redis:
        """To look into it."""
        return Redis(unix_socket_path=self.socket, password=self.password)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = [
            *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
            *("--unixsocket", self.socket, "--dir", str(self.folder), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no"),
            *(("--requirepass", self.password) if self.password else ()),
            *self.options,
        ]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        until = time.monotonic() + READY_SECONDS
        while True:
            with suppress(RedisError, OSError), self.client() as client:
                client.ping()
                return
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def clear(self) -> None:
        """Forget everything."""
        with self.client() as client:
            client.flushall()


@contextmanager
def redis_server(
    *options: str, tcp: bool = False, password: str | None = None
) -> Iterator[RedisServer]:
    """A running server with further `options`, `tcp` on a free loopback port as well."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        port = _free_port() if tcp else 0
        server = RedisServer(Path(folder), *options, port=port, password=password)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
