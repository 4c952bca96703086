"""Does an effect of the position get found, where there is one, and only there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.compare.positions import Place, Seen, by_bin, by_position, find_fade

SIZES = (41, 41, 18, 38, 38, 24, 30, 30, 30, 10)
"""Packs of a sample of 300 records."""
DAYS = 300
FADES_FROM = 20


def day(seed: int, wrong_anyhow: float | None, wrong_at_the_end: float = 0.0) -> list[Seen]:
    """Packs whose answers are wrong by chance, each pack by a chance of its own where `None` is
    given, and from FADES_FROM on for another reason."""
    random = np.random.default_rng(seed)
    seen = []
    for pack, size in enumerate(SIZES):
        chance = random.choice([0.0, 0.05, 0.3]) if wrong_anyhow is None else wrong_anyhow
        for position in range(1, size + 1):
            faded = position >= FADES_FROM and random.random() < wrong_at_the_end
            wrong = random.random() < chance or faded
            seen.append(Seen(Place(pack, position, size, True), not wrong))
    return seen


def alarms(days: int, wrong_anyhow: float | None) -> int:
    fades = [find_fade(day(seed, wrong_anyhow)) for seed in range(days)]
    return sum(fade is not None and fade.found for fade in fades)


def test_honest_packs_are_hardly_ever_said_to_fade() -> None:
    # 3 or more of 30 come 3 times in 1,000 where 1 of 100 is the rate.
    assert alarms(30, None) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("wrong_anyhow", [0.03, 0.2, None])
def test_honest_packs_are_said_to_fade_once_in_a_hundred_days(wrong_anyhow: float | None) -> None:
    # 9 or more of 300 come 4 times in 1,000 where 1 of 100 is the rate.
    assert alarms(DAYS, wrong_anyhow) <= 8


@pytest.mark.slow
def test_packs_that_are_worse_for_being_long_do_not_fade() -> None:
    found = 0
    for seed in range(DAYS // 3):
        random = np.random.default_rng(seed)
        seen = [
            Seen(Place(pack, position, size, True), random.random() >= (0.4 if size > 35 else 0.02))
            for pack, size in enumerate(SIZES)
            for position in range(1, size + 1)
        ]
        fade = find_fade(seen)
        found += fade is not None and fade.found
    assert found <= 4


@pytest.mark.parametrize(("wrong_at_the_end", "tolerance"), [(1.0, 0), (0.4, 3)])
def test_fading_is_found_and_where_it_begins(wrong_at_the_end: float, tolerance: int) -> None:
    for seed in range(8):
        fade = find_fade(day(seed, 0.03, wrong_at_the_end))
        assert fade is not None
        assert fade.found
        assert abs(fade.position - FADES_FROM) <= tolerance
        assert fade.longest == max(SIZES)
        assert fade.before > 0.9 > fade.after


def test_answers_that_get_better_do_not_fade() -> None:
    seen = [
        Seen(Place(pack, position, 30, True), position >= 15)
        for pack in range(8)
        for position in range(1, 31)
    ]
    fade = find_fade(seen)
    assert fade is None or not fade.found


def test_a_fall_too_small_to_matter_is_none() -> None:
    """Of 50,000 answers a fall by two points is no chance, and nothing to give packing up for."""
    seen = [
        Seen(Place(pack, position, 20, True), not (position > 10 and pack % 50 == 0))
        for pack in range(500)
        for position in range(1, 21)
    ]
    fade = find_fade(seen)
    assert fade is not None
    assert fade.p <= 0.01
    assert not fade.found


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 12), st.booleans(), st.booleans()),
        max_size=60,
        unique_by=lambda row: row[:2],
    )
)
@settings(max_examples=40)
def test_whatever_was_seen_is_counted_once(rows: list[tuple[int, int, bool, bool]]) -> None:
    seen = [Seen(Place(pack, at, 12, came), good and came) for pack, at, good, came in rows]
    for groups in (by_position(seen), by_bin(seen)):
        assert sum(row["of"] for row in groups) == len(rows)
        assert sum(row["good"] for row in groups) == sum(one.good for one in seen)
        edges = [(row["from"], row["to"]) for row in groups]
        assert all(left[1] < right[0] for left, right in pairwise(edges))
    fade = find_fade(seen)
    if fade is not None:
        assert 2 <= fade.position <= 12
        assert 0 < fade.p <= 1
