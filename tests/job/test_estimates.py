"""What is learned from numbers: means, deviations and lines that do not depend on the order."""

from __future__ import annotations

import random
from functools import reduce
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.estimates.moments import Line, Moments

VALUES = st.lists(st.floats(0.0, 1e5), min_size=2, max_size=40)
PAIRS = st.lists(st.tuples(st.floats(1.0, 1e5), st.floats(0.0, 1e3)), min_size=1, max_size=40)


def moments(values: list[float]) -> Moments:
    return reduce(Moments.seen, values, Moments())


def line(pairs: list[tuple[float, float]]) -> Line:
    return reduce(lambda known, pair: known.seen(*pair), pairs, Line())


def alike(one: Moments | Line, other: Moments | Line) -> bool:
    return one.numbers() == pytest.approx(other.numbers(), rel=1e-6, abs=1e-3)


@given(VALUES)
def test_mean_and_deviation_are_those_of_the_values(values: list[float]) -> None:
    known = moments(values)
    assert known.mean == pytest.approx(fmean(values), abs=1e-6)
    assert known.deviation == pytest.approx(stdev(values), rel=1e-6, abs=1e-3)


@given(VALUES, st.integers(0, 40), st.randoms(use_true_random=False))
def test_the_order_of_merging_does_not_matter(
    values: list[float], cut: int, rng: random.Random
) -> None:
    parts = [moments(values[:cut]), moments(values[cut:]), Moments()]
    rng.shuffle(parts)
    assert alike(reduce(Moments.merged, parts, Moments()), moments(values))


@given(PAIRS, st.integers(0, 40))
def test_lines_can_be_merged_in_any_order(pairs: list[tuple[float, float]], cut: int) -> None:
    left, right = line(pairs[:cut]), line(pairs[cut:])
    assert alike(left.merged(right), line(pairs))
    assert alike(right.merged(left), line(pairs))


@given(VALUES, VALUES, st.floats(1.0, 50.0))
def test_an_old_memory_is_bounded_and_keeps_its_mean(
    old: list[float], new: list[float], at_most: float
) -> None:
    aged = moments(old).aged(at_most)
    assert aged.n <= at_most
    assert aged.mean == moments(old).mean
    both = aged.merged(moments(new))
    share = aged.n / both.n
    assert both.mean == pytest.approx(share * aged.mean + (1 - share) * fmean(new), abs=1e-3)


def test_a_changed_model_is_relearned_however_long_the_old_one_was_known() -> None:
    old = Moments(1e6, 40.0, 1e6 * 25).aged(200)
    new = old.merged(moments([120.0] * 1000))
    assert new.mean > 100


@given(st.floats(0.0, 5.0), st.floats(1e-4, 0.01), st.lists(st.floats(500, 9000), min_size=20))
def test_a_line_is_found_where_the_calls_differ(
    start: float, slope: float, tokens: list[float]
) -> None:
    tokens = [*tokens, 500.0, 3000.0, 9000.0]
    known = line([(x, start + slope * x) for x in tokens])
    for x in (500.0, 9000.0):
        assert known.at(x) == pytest.approx(start + slope * x, rel=0.15, abs=1.5)


def test_calls_that_are_all_alike_are_taken_to_grow_with_their_size() -> None:
    known = line([(5000.0, 4.0)] * 30)
    assert known.at(5000) == pytest.approx(4.0)
    assert known.at(10000) == pytest.approx(8.0)
    assert known.deviation == 0.0


@given(PAIRS)
def test_a_line_never_falls_and_never_foretells_less_than_nothing(
    pairs: list[tuple[float, float]],
) -> None:
    known = line(pairs)
    assert known.slope >= 0
    assert 0 <= known.at(10.0) <= known.at(1e5) + 1e-6


@pytest.mark.parametrize(
    "numbers", [[1.0], [1.0, 2.0, -3.0], [1.0, float("nan"), 0.0], "abc", None]
)
def test_what_no_moments_gave_is_refused(numbers: object) -> None:
    with pytest.raises(ValueError, match=r"numbers|moments|finite"):
        Moments.of(numbers)  # type: ignore[arg-type]
