"""An upstream that answers at once: nginx with a canned chat completion.

Invariant: when Upstream is left its processes are gone. It is one worker, so that it takes at most
one processor from what is measured.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import orjson

HOST = "127.0.0.1"
MODELS = ("instant-small", "instant-large")
"""What it is configured to have; it answers whatever it is asked for."""
_START_SECONDS = 10.0
_END_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_COMPLETION = {
    "id": "chatcmpl-9f8e7d6c5b4a39281706",
    "object": "chat.completion",
    "created": 1767225600,
    "model": MODELS[0],
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": (
                    "The payment service could not reach its database between 09:12 and 09:31: the "
                    "pool of connections was exhausted by a nightly export that ran late. Move the "
                    "export to a replica, and alert on the pool at 80 percent instead of at 100."
                ),
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 128, "completion_tokens": 57, "total_tokens": 185},
}
_CONFIGURATION = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_timeout 600s;
  keepalive_requests 100000000;
  default_type application/json;
  server {{
    listen {host}:{port};
    location / {{ return 200 '{answer}'; }}
  }}
}}
"""


def missing_packages() -> list[str]:
    """The Debian packages of the programs that are not on the path."""
    packages = {"nginx": "nginx-light", "wrk": "wrk"}
    return [package for program, package in packages.items() if shutil.which(program) is None]


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class Upstream:
    """A context manager: nginx on a free loopback port, with its files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes]
        self.base_url: str
        """The base of the protocol's URLs."""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        port = free_port()
        configuration = self._folder / "nginx.conf"
        answer = orjson.dumps(_COMPLETION).decode()
        configuration.write_text(
            _CONFIGURATION.format(folder=self._folder, host=HOST, port=port, answer=answer)
        )
        with (self._folder / "nginx.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["nginx", "-c", str(configuration), "-e", str(self._folder / "error.log")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.base_url = f"http://{HOST}:{port}/v1"
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait_until_it_answers(self) -> None:
        """Raises RuntimeError where nginx does not start."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                httpx.get(self.base_url).raise_for_status()
            except httpx.TransportError:
                time.sleep(_LOOK_SECONDS)
            else:
                return
        logs = (path.read_text() for path in self._folder.glob("*.log"))
        raise RuntimeError(f"nginx did not start: {' '.join(logs)[-2000:]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=_END_SECONDS)
