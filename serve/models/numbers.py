"""What a model's server measures, by name, and under which name Prometheus reads it.

Invariant: a name that a server gives and that is not here is told to nobody; one that it does not
give has no series.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from serve.metrics import families
from serve.metrics.numbers import Snapshot

QUEUE: Final = "queue"
"""Requests that wait."""
RUNNING: Final = "running"
"""Requests that are being answered."""
BATCH_SIZE: Final = "batch_size"
"""What is computed at once: texts, or streams; the mean of the last batches or steps."""
TOKENS_PER_SECOND: Final = "tokens_per_second"
"""Read by an embedder, written by a generator, lately."""
CACHE_USE: Final = "cache_use"
"""The share of the memory for the keys and values of what is written, or of the cache of vectors,
that is in use."""

FAMILIES: Final = {
    QUEUE: families.MODEL_QUEUE,
    RUNNING: families.MODEL_RUNNING,
    BATCH_SIZE: families.MODEL_BATCH_SIZE,
    TOKENS_PER_SECOND: families.MODEL_TOKENS,
    CACHE_USE: families.MODEL_CACHE_USE,
}


def snapshot(models: Mapping[str, Mapping[str, float]]) -> Snapshot:
    """The numbers of a process's models, by the model's name, as the board takes them."""
    found: Snapshot = {}
    for model, numbers in models.items():
        for name, value in numbers.items():
            if (family := FAMILIES.get(name)) is not None:
                found.setdefault(family.name, []).append(((model,), [float(value)]))
    return found
