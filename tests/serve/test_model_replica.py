"""A model's process of Ray Serve, without it."""

from __future__ import annotations

from typing import Any

import pytest

from serve.models.load import Loader
from serve.models.replica import ModelReplica
from serve.models.settings import ModelSettings
from tests.serve.tiny_models import LOADER, TinyServer, fault


async def test_a_stream_that_is_closed_frees_its_place_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr("serve.models.replica.ray.get_gpu_ids", list)
    made: list[TinyServer] = []

    def load(settings: ModelSettings) -> TinyServer:
        made.append(TinyServer(settings))
        return made[0]

    replica = ModelReplica({"writer": {"generator": "tiny"}}, Loader(fault, load), None)
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "to be or not"}]}
    chunks = replica.stream("chat/completions", body, 60)
    await anext(chunks)
    assert made[0].running == 1
    await chunks.aclose()
    assert made[0].running == 0


async def test_only_what_is_in_memory_is_said_to_give_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked for another by that would have it loaded."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr("serve.models.replica.ray.get_gpu_ids", list)
    embedder = {"embedder": "bundled"}
    alone = ModelReplica({"e5": embedder}, LOADER, None)
    assert alone.embedders() == {"e5": "bundled"}
    pool = ModelReplica({"pool": {"pool": {"e5": embedder}, "loaded": 1}}, LOADER, None)
    assert pool.embedders() == {}
