"""What keeps packs small: rows lost beyond a size, answers out of time, the tokens of a minute."""

from __future__ import annotations

import pytest

from job.pack.cost import Pack, Rates
from job.pack.grid import step_of, step_within, tokens_of
from job.pack.size import PackSize
from tests.job.pack_world import MANY_ROWS, REQUESTS, World, curve, fed


def breaking(size: PackSize, packs: int, row: int, beyond: int) -> int:
    """Packs of rows of `row` tokens are sent; those of more than `beyond` tokens are not answered
    in time. How many were not."""
    lost = 0
    for _ in range(packs):
        rows = size.wire["fast"] // row
        wire = rows * row
        if wire > beyond:
            lost += 1
            size.observe(Pack(wire, rows, rows, 0, 0, 0.0, whole=False))
        else:
            size.observe(Pack(wire, rows, 0, wire + 260, rows * (row // 3), wire / 1300))
    return lost


@pytest.mark.parametrize("row", [15, 60, 130])
def test_packs_of_many_rows_that_get_lost_beyond_some_size_shrink_below_it(row: int) -> None:
    size = PackSize(MANY_ROWS)
    assert breaking(size, 60, row, 100_000) == 0
    assert size.wire["fast"] // row >= 180
    assert breaking(size, 200, row, 9000) <= 50
    assert size.wire["fast"] < 9000


@pytest.mark.parametrize("row", [10, 15, 130])
def test_rows_that_get_lost_in_bigger_packs_keep_them_small_however_many_rows_they_hold(
    row: int,
) -> None:
    size = PackSize(MANY_ROWS)
    World(MANY_ROWS, curve(0.0, 0.021, 3.0), row=row, answer=row // 3).run(60_000, size)
    assert size.wire["fast"] <= 6250
    assert size.why == "rows"


def test_packs_that_are_never_answered_in_time_shrink_from_the_first_on() -> None:
    size = PackSize(REQUESTS)
    breaking(size, 9, 60, 2000)
    assert size.wire["fast"] < 4000
    assert size.why == "cuts"
    breaking(size, 10, 60, 2000)
    assert size.wire["fast"] <= 2000


def test_it_takes_no_more_tokens_than_a_minute_allows_and_says_so() -> None:
    size = PackSize(Rates(rpm=None, tpm=2000, concurrency=20, context=16_384))
    assert size.wire["fast"] <= 2000
    fed(size, 20)
    assert size.wire["fast"] <= 1320, "2,000 tokens hold instructions and answers too"
    assert size.why == "minute"


def test_a_limit_that_is_found_later_brings_it_down_at_once() -> None:
    size = PackSize(REQUESTS)
    fed(size, 40)
    size.rates = Rates(rpm=60, tpm=8000, concurrency=20, context=16_384)
    fed(size, 1)
    assert (size.wire["fast"], size.why) == (5000, "minute")


def test_the_size_that_a_step_stands_for_is_of_that_step() -> None:
    for step in range(step_of(1), 41):
        assert step_of(tokens_of(step)) == step_within(tokens_of(step) + 1) == step


def test_a_size_that_the_user_fixed_stays_whatever_a_minute_allows() -> None:
    size = PackSize(Rates(rpm=None, tpm=2000, concurrency=20, context=16_384), fixed=4000)
    fed(size, 5)
    assert (size.wire["fast"], size.why) == (4000, "fixed")
