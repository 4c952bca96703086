"""For how long the vectors of texts are kept, and in how much memory."""

from __future__ import annotations

import numpy as np

from serve.cache.store import MemoryStore
from serve.embedding.texts import JITTER, KEPT_SECONDS, Found, VectorCache, key_of

MOST = 100_000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_vector_is_kept_for_about_a_day_and_not_all_as_long() -> None:
    clock = Clock()
    cache = VectorCache(MemoryStore(MOST, clock), MOST)
    keys = [key_of(f"text {number}") for number in range(50)]
    for key in keys:
        cache.put(key, Found(7, np.array([0.5, -0.25], dtype=np.float32)))
    clock.now = KEPT_SECONDS * (1 - JITTER) - 1
    found = [cache.get(key) for key in keys]
    assert all(each is not None and each.tokens == 7 for each in found)
    assert all(each is not None and each.vector.tolist() == [0.5, -0.25] for each in found)
    clock.now = KEPT_SECONDS
    assert 5 < sum(cache.get(key) is not None for key in keys) < 45
    clock.now = KEPT_SECONDS * (1 + JITTER) + 1
    assert not any(cache.get(key) for key in keys)


def test_it_takes_no_more_memory_than_it_may() -> None:
    cache = VectorCache(MemoryStore(MOST, Clock()), MOST)
    for number in range(1000):
        cache.put(key_of(str(number)), Found(1, np.zeros(100, dtype=np.float32)))
    assert 0.9 < cache.use <= 1.0
    assert cache.get(key_of("999")) is not None
    assert cache.get(key_of("0")) is None
