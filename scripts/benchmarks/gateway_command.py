"""`fupan serve` as a user starts it, with fupan.yaml and a file of hashed keys, for benchmarks.

Invariant: when Gateway is left, every process that it was seen to have is gone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from scripts.benchmarks.command import Command
from scripts.benchmarks.gateway_upstream import HOST, free_port
from scripts.benchmarks.workload import KEY_VARIABLE
from serve.gateway.keys import digest_of, new_key

PROVIDER = "measured"
"""The provider's name in fupan.yaml."""
_START_SECONDS = 180.0
_LOOK_SECONDS = 0.2


def provider_section(base_url: str, models: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """A provider in fupan.yaml whose first model is cheap and easy, and the last powerful."""
    prices = {"currency": "USD", "input": "2.5", "output": "10"}
    return {
        "base_url": base_url,
        "key_env": KEY_VARIABLE,
        "models": list(models),
        "prices": prices,
        **more,
    }


def write_configuration(
    folder: Path,
    provider: Mapping[str, Any],
    serve: Mapping[str, Any],
    models: Mapping[str, Any] | None = None,
) -> tuple[Path, str]:
    """fupan.yaml with keys that have limits which are never reached; the file and the key."""
    folder.mkdir(parents=True, exist_ok=True)
    key = new_key()
    record = {
        "name": "bench",
        "tenant": "bench",
        "sha256": digest_of(key),
        "rpm": 10_000_000,
        "tpm": 10_000_000_000,
        "max_spend": str(Decimal(1_000_000)),
    }
    keys, config = folder / "keys.yaml", folder / "fupan.yaml"
    keys.write_text(yaml.safe_dump([record]))
    section = {"keys": str(keys), "state": str(folder / "state"), **serve}
    sections = {"providers": {PROVIDER: dict(provider)}, "models": dict(models or {})}
    config.write_text(yaml.safe_dump({**sections, "serve": section}, sort_keys=False))
    return config, key


class Gateway:
    """A context manager: `fupan serve` on a free loopback port."""

    def __init__(
        self,
        folder: Path,
        provider: Mapping[str, Any],
        serve: Mapping[str, Any] | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> None:
        self.config, self.key = write_configuration(folder, provider, serve or {}, models)
        port = free_port()
        self._log = folder / "serve.log"
        self._command = Command(
            [
                *(sys.executable, "-m", "job", "serve"),
                *("--config", str(self.config), "--host", HOST, "--port", str(port)),
            ],
            self._log,
        )
        self.url = f"http://{HOST}:{port}"

    @property
    def headers(self) -> dict[str, str]:
        """What a client sends."""
        return {"content-type": "application/json", "authorization": f"Bearer {self.key}"}

    @property
    def pid(self) -> int:
        """The root of its processes."""
        return self._command.pid

    def __enter__(self) -> Self:
        self._command.__enter__()
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait_until_ready(self) -> None:
        """Raises RuntimeError where it does not become ready."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._command.running:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5.0).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(_LOOK_SECONDS)
        said = self._log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"the gateway did not become ready: {said}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._command.interrupt()
        self._command.__exit__(kind, error, traceback)
