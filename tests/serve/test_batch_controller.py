"""The limit of a batch, by what the batches before were."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.batch_controller import FORGET_SECONDS, Batch, BatchController, Bounds

BOUNDS = Bounds(least=256, most=16_384, target=0.25, longest=1.0)


def controller(first: int = 1024) -> BatchController:
    return BatchController(BOUNDS, first)


@dataclass
class Device:
    """A simulated device: a batch takes a fixed time and one for each token; what is beyond its
    memory does not fit."""

    fixed: float = 0.005
    per_token: float = 0.0001
    memory: int = 10**9
    now: float = 0.0

    def compute(
        self, of: BatchController, tokens: int, waiting: int = 10**6, wait: float = 0.0
    ) -> float:
        """Seconds of a batch of so many tokens, or of as many as may."""
        tokens = min(tokens, of.limit)
        seconds = self.fixed + self.per_token * tokens
        self.now += seconds
        if tokens > self.memory:
            of.did_not_fit(tokens, self.now)
        else:
            of.done(Batch(tokens, seconds, waiting, wait, tokens / self.memory), self.now)
        return seconds


def test_under_load_a_batch_takes_nearly_as_long_as_it_may() -> None:
    device, limit = Device(), controller()
    times = [device.compute(limit, 10**6) for _ in range(200)]
    assert all(0.7 * BOUNDS.target <= seconds <= BOUNDS.target for seconds in times[100:])


@pytest.mark.parametrize(("wait", "longest"), [(0.5, 0.25), (2.0, 0.5), (60.0, 1.0)])
def test_a_batch_may_take_a_quarter_of_what_the_queue_takes(wait: float, longest: float) -> None:
    device, limit = Device(), controller()
    times = [device.compute(limit, 10**6, wait=wait) for _ in range(200)]
    assert all(0.7 * longest <= seconds <= longest for seconds in times[100:])
    device.compute(limit, 10**6, wait=0.0)
    device.compute(limit, 10**6, wait=0.0)
    assert device.compute(limit, 10**6, wait=0.0) <= BOUNDS.target


def test_a_faster_device_gets_larger_batches_up_to_the_most() -> None:
    device, limit = Device(per_token=1e-7), controller()
    for _ in range(50):
        device.compute(limit, 10**6)
    assert limit.limit == BOUNDS.most


def test_a_device_that_becomes_slow_is_within_the_target_after_few_batches() -> None:
    device, limit = Device(), controller()
    for _ in range(100):
        device.compute(limit, 10**6)
    device.per_token *= 4
    for _ in range(5):
        device.compute(limit, 10**6)
    assert device.compute(limit, 10**6) <= BOUNDS.target


def test_one_slow_batch_takes_no_more_than_half_of_the_limit() -> None:
    limit = controller(8192)
    limit.done(Batch(8192, 60.0, 10**6), 0.0)
    assert limit.limit == 4096


def test_nothing_is_learned_of_larger_batches_from_small_ones() -> None:
    device, limit = Device(), controller()
    for _ in range(50):
        device.compute(limit, 100)
    assert limit.limit == 1024


def test_without_a_queue_there_is_no_reason_to_grow() -> None:
    device, limit = Device(), controller()
    for _ in range(50):
        device.compute(limit, 10**6, waiting=0)
    assert limit.limit == 1024


@pytest.mark.parametrize("used", ["memory", "cache"])
def test_it_shrinks_at_ninety_percent_and_does_not_grow_from_eighty(used: str) -> None:
    limit = controller()
    limit.done(Batch(1024, 0.01, 10**6, **{used: 0.85}), 0.0)
    assert limit.limit == 1024
    limit.done(Batch(1024, 0.01, 10**6, **{used: 0.9}), 0.0)
    assert limit.limit == 768


def test_what_did_not_fit_is_not_tried_again_for_a_minute() -> None:
    device, limit = Device(per_token=1e-7, memory=3000), controller(4096)
    device.compute(limit, 10**6)
    assert limit.limit == 2048
    since = device.now
    while device.now < since + FORGET_SECONDS:
        device.compute(limit, 10**6)
        assert limit.limit <= 2048
        device.now += 1.0
    device.memory = 10**9
    for _ in range(20):
        device.compute(limit, 10**6)
    assert limit.limit == BOUNDS.most


@given(
    first=st.integers(1, 10**6),
    batches=st.lists(
        st.tuples(
            st.integers(1, 10**6),
            st.floats(0, 100),
            st.integers(0, 10**6),
            st.floats(0, 100),
            st.floats(0, 1),
            st.floats(0, 1),
            st.booleans(),
        ),
        max_size=40,
    ),
)
def test_it_stays_within_its_bounds_and_grows_only_when_all_allow_it(
    first: int, batches: list[tuple[int, float, int, float, float, float, bool]]
) -> None:
    limit = controller(first)
    for now, (tokens, seconds, waiting, wait, memory, cache, fits) in enumerate(batches):
        before = limit.limit
        if fits:
            limit.done(Batch(tokens, seconds, waiting, wait, memory, cache), float(now))
        else:
            limit.did_not_fit(tokens, float(now))
        assert BOUNDS.least <= limit.limit <= BOUNDS.most
        if limit.limit > before:
            assert waiting > 0
            assert seconds < max(BOUNDS.target, min(wait / 4, BOUNDS.longest))
            assert max(memory, cache) < 0.8
        if fits and max(memory, cache) >= 0.9:
            assert limit.limit < before or before == BOUNDS.least
