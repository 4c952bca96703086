"""A gateway with keys, and the official `openai` client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from serve.gateway.keys import digest_of
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream

MODELS = ("simulated", "other")
KEYS: dict[str, dict[str, Any]] = {
    "fp-client": {"name": "client", "tenant": "team"},
    "fp-narrow": {"name": "narrow", "tenant": "team", "models": ["other"]},
    "fp-rare": {"name": "rare", "tenant": "team", "rpm": 1},
}
SAID: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello."}]


@contextmanager
def openai_world(upstream: Upstream, folder: Path) -> Iterator[World]:
    """A gateway in front of `upstream`, with KEYS in a file in `folder`."""
    keys = folder / "keys.json"
    keys.write_bytes(
        orjson.dumps([{**record, "sha256": digest_of(key)} for key, record in KEYS.items()])
    )
    provider = provider_at(upstream.url, models=MODELS)
    with gateway_world({"main": provider}, {"keys": str(keys)}) as world:
        yield world


def client_of(world: World, key: str = "fp-client", **options: Any) -> OpenAI:
    return OpenAI(base_url=world.base_url, api_key=key, **{"max_retries": 0, **options})
