"""The store in memory: bounded in bytes and time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.cache.store import ENTRY_BYTES, MemoryStore
from serve.cache.ttl import time_to_live
from tests.serve.cache_calls import Clock

KEYS = [bytes([i]) * 32 for i in range(8)]
STEPS = st.tuples(
    st.sampled_from(["set", "add", "get", "delete", "wait"]),
    st.sampled_from(KEYS),
    st.integers(0, 700),
)


@given(st.lists(STEPS, max_size=60))
async def test_it_is_a_dictionary_that_forgets(steps: list[tuple[str, bytes, int]]) -> None:
    clock = Clock()
    most = 5_000
    store = MemoryStore(most, clock)
    written: dict[bytes, tuple[bytes, float]] = {}
    for step, key, size in steps:
        value = bytes([size % 251]) * size
        if step == "set":
            await store.set(key, value, 10)
            written[key] = (value, clock.now + 10)
        elif step == "add":
            absent = await store.get(key) is None
            assert await store.add(key, value, 10) == absent
            if absent:
                written[key] = (value, clock.now + 10)
        elif step == "delete":
            await store.delete(key)
            written.pop(key, None)
        elif step == "wait":
            clock.now += size / 100
        found = await store.get(key)
        if found is not None:
            assert found == written[key][0]
            assert clock.now < written[key][1]
        assert store.held <= most


async def test_what_was_not_used_for_longest_leaves_first() -> None:
    store = MemoryStore(10 * (100 + 32 + ENTRY_BYTES), Clock())
    keys = [bytes([i]) * 32 for i in range(11)]
    for key in keys[:10]:
        await store.set(key, b"x" * 100, 60)
    assert await store.get(keys[0]) is not None
    await store.set(keys[10], b"x" * 100, 60)
    assert await store.get(keys[1]) is None
    assert await store.get(keys[0]) is not None
    assert len(store) == 10


async def test_its_time_ends() -> None:
    clock = Clock()
    store = MemoryStore(10_000, clock)
    await store.set(b"key", b"value", 10)
    clock.now += 9.9
    assert await store.get(b"key") == b"value"
    clock.now += 0.1
    assert await store.get(b"key") is None
    assert store.held == 0
    assert await store.add(b"key", b"new", 10)


async def test_an_eighth_of_it_is_too_large() -> None:
    store = MemoryStore(8_000, Clock())
    await store.set(b"key", b"old", 60)
    await store.set(b"key", b"x" * 1_000, 60)
    assert await store.get(b"key") is None
    await store.set(b"key", b"x" * (1_000 - 3 - ENTRY_BYTES), 60)
    assert await store.get(b"key") is not None


@given(st.integers(0, 10**6), st.binary(min_size=32, max_size=32))
def test_time_is_a_quarter_to_all_of_it_with_a_tenth_of_jitter(tokens: int, key: bytes) -> None:
    seconds = time_to_live(3_600, tokens, key)
    assert 3_600 / 4 * 0.9 <= seconds <= 3_600 * 1.1
    assert seconds == time_to_live(3_600, tokens, key)


def test_a_long_prompt_is_kept_for_a_shorter_time() -> None:
    middle = b"\x80" + bytes(31)
    times = [round(time_to_live(3_600, tokens, middle)) for tokens in (1, 256, 1_024, 4_096, 10**5)]
    assert times == [3_600, 3_600, 1_800, 900, 900]


def test_answers_kept_together_leave_apart() -> None:
    times = [time_to_live(3_600, 10, bytes([i]) * 32) for i in range(256)]
    assert max(times) - min(times) > 700
    assert abs(sum(times) / len(times) - 3_600) < 10
