"""A record that takes more than 32 parts fails by itself; one that takes 32 does not."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from job.analyse.parts import MAX_PARTS, split_item
from job.pack.packing import Item, make_item
from job.records import Record
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import dispatcher
from tests.job.make import record

CONTEXT = 2048
FAST = {"time_scale": 1000.0}


@pytest.mark.slow
async def test_above_32_parts_a_record_fails_alone_and_costs_no_call() -> None:
    with SimulatedProvider(Settings.model_validate(FAST)) as server:
        async with dispatcher(server.base_url, context=CONTEXT) as asking:
            fit = asking.fit
            words = bisect_left(
                range(100_000), True, key=lambda n: n > 0 and split_item(item(n), fit) is None
            )
            assert len(split_item(item(words - 1), fit) or ()) == MAX_PARTS
            (failed,) = await asking.submit([long(words)])
            assert (failed.via, failed.reason) == ("failed", "too_large")
            assert server.stats()["requests"] == 0
            most, beside = await asking.submit([long(words - 1), record("all is well")])
    assert (most.via, beside.via) == ("answered", "answered")


def long(words: int) -> Record:
    return record("word " * words, lane="slow")


def item(words: int) -> Item:
    return make_item(long(words))
