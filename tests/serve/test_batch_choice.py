"""Which of those who wait make the next batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.batch_choice import WASTE, choose

SIZES = st.lists(st.integers(1, 600), min_size=1, max_size=80)


@given(SIZES, st.integers(1, 4000), st.booleans(), st.integers(1, 4000))
def test_the_oldest_is_in_it_and_the_limit_holds(
    sizes: list[int], limit: int, padded: bool, enough: int
) -> None:
    chosen = choose(sizes, limit, padded, enough)
    taken = [sizes[place] for place in chosen]
    assert 0 in chosen
    assert len(set(chosen)) == len(chosen)
    assert taken == sorted(taken)
    cost = max(taken) * len(taken) if padded else sum(taken)
    assert cost <= limit or len(taken) == 1
    assert cost - sum(taken) <= WASTE * max(cost, enough)


@given(SIZES, st.integers(1, 4000))
def test_nobody_who_is_nearer_in_length_is_left_out(sizes: list[int], limit: int) -> None:
    chosen = choose(sizes, limit, True, enough=1)
    shortest, longest = sizes[chosen[0]], sizes[chosen[-1]]
    left = {size for place, size in enumerate(sizes) if place not in chosen}
    assert not any(shortest < size < longest for size in left)


def test_a_short_text_is_not_padded_to_a_long_one() -> None:
    assert choose([10, 500, 12, 490, 11], 4000, True, enough=1) == [0, 4, 2]
    assert choose([500, 10, 12, 490, 11], 4000, True, enough=1) == [3, 0]


def test_without_padding_company_costs_nothing() -> None:
    assert sorted(choose([10, 500, 12, 490, 11], 4000, False, enough=1)) == [0, 1, 2, 3, 4]


def test_few_short_texts_are_better_together_though_they_are_padded() -> None:
    assert sorted(choose([10, 25, 14, 490], 4000, True, enough=256)) == [0, 1, 2]
