"""The records that are held at once, and how far packs may grow by them."""

from __future__ import annotations

import pytest

from job.pack.cost import Pack, Rates
from job.pack.held import MOST_BLOCKS, blocks_at_once, records_held
from job.pack.size import PackSize
from serve.ask.settings import Provider


def provider(context: int, permits: int, rpm: float | None = 60) -> Provider:
    limits = {"rpm": rpm, "max_concurrency": permits}
    return Provider.model_validate(
        {"base_url": "http://127.0.0.1:9/v1", "models": ["m"], "context": context, "limits": limits}
    )


def grown(of: Provider, row: int, rate: float = 1500.0) -> PackSize:
    """Where packs of rows of `row` tokens come to that lose none, `rate` tokens a second."""
    size = PackSize(Rates.of(of))
    for _ in range(80):
        rows = max(1, size.wire["fast"] // row)
        wire = rows * row
        size.observe(Pack(wire, rows, 0, wire + 260, rows * (row // 3), wire / rate))
    return size


@pytest.mark.parametrize("permits", [5, 20, 500])
@pytest.mark.parametrize("context", [8192, 131_072])
@pytest.mark.parametrize("row", [15, 60])
def test_what_is_held_fills_two_packs_for_every_permit_however_far_they_grow(
    context: int, permits: int, row: int
) -> None:
    asked = provider(context, permits, rpm=None)
    size = grown(asked, row)
    rows = size.wire["fast"] // row
    assert size.wire["fast"] <= 5000 or rows * 2 * permits <= records_held(asked)
    assert size.wire["fast"] >= 4000, "what is held is no reason for packs smaller than at first"


def test_packs_that_could_not_be_filled_are_not_tried_and_the_size_says_so() -> None:
    size = grown(provider(131_072, 60, rpm=200), 60, rate=1000.0)
    rows = size.wire["fast"] / 60
    in_flight = 200 / 60 * size.wire["fast"] / 1000
    assert rows * 2 * in_flight <= 1.1 * records_held(provider(131_072, 60))
    assert size.wire["fast"] > 6000
    assert size.why == "window"


def test_permits_that_a_request_limit_leaves_idle_do_not_keep_packs_small() -> None:
    assert grown(provider(65_536, 200), 60).wire["fast"] >= 23_000


def test_short_records_in_a_big_context_are_held_for_packs_of_four_hundred() -> None:
    asked = provider(65_536, 20)
    assert records_held(asked) >= 2 * 20 * 400
    assert grown(asked, 60).wire["fast"] >= 23_000


def test_memory_bounds_what_is_held() -> None:
    assert blocks_at_once(provider(1_000_000, 20), None) == MOST_BLOCKS
    assert blocks_at_once(provider(8192, 20), 1000) == 16
