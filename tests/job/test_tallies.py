"""Tallies: bounded, and the same however the records are split."""

from __future__ import annotations

from collections import Counter
from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from job.reduce.tallies import CELLS, MINUTE_US, NAMES, Distinct, Names, Timeline, hash64

Minutes = list[int]


def timeline(minutes: Minutes) -> Timeline:
    line = Timeline()
    for minute in minutes:
        line.add(minute * MINUTE_US)
    return line


def names(pairs: list[tuple[str, int]]) -> Names:
    counts = Names()
    for name, record in pairs:
        counts.add(name, hash64(f"r{record}"))
    return counts


def distinct(values: list[int]) -> Distinct:
    counts = Distinct()
    for value in values:
        counts.add(value)
    return counts


def test_a_timeline_keeps_minutes_while_it_can() -> None:
    line = timeline([0, 0, 5, 719])
    assert line.minutes() == 1
    assert line.cells == {0: 2, 5: 1, 719: 1}


def test_a_long_timeline_gets_wider_cells_and_loses_no_record() -> None:
    line = timeline(list(range(10_000)))
    assert line.minutes() == 16
    assert len(line.cells) <= CELLS
    assert line.cells.total() == 10_000


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 5_000), max_size=800), max_size=4))
def test_timelines_of_parts_merge_to_that_of_the_whole(parts: list[Minutes]) -> None:
    merged = Timeline()
    for part in reversed(parts):
        merged.absorb(timeline(part))
    assert merged == timeline([minute for part in parts for minute in part])


def test_few_names_are_counted_exactly() -> None:
    counts = names([("web-1", 1), ("web-2", 2), ("web-1", 3)])
    assert counts.exact
    assert counts.top(2) == [("web-1", 2), ("web-2", 1)]


def test_of_very_many_names_a_bounded_number_is_kept_and_the_heavy_ones_are_among_them() -> None:
    rare = [(f"host-{n}", n) for n in range(20_000)]
    heavy = [("db-1", 50_000 + n) for n in range(2_000)]
    counts = names([*rare, *heavy])
    assert not counts.exact
    assert len(counts.draws) <= NAMES
    assert counts.top(1)[0][0] == "db-1"


@settings(max_examples=20)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 900), st.integers(0, 10**6)), max_size=600), max_size=4
    )
)
def test_names_of_parts_merge_to_those_of_the_whole(parts: list[list[tuple[int, int]]]) -> None:
    named = [[(f"n{name}", record) for name, record in part] for part in parts]
    merged = Names()
    for part in reversed(named):
        merged.absorb(names(part))
    assert merged == names([pair for part in named for pair in part])


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=30), max_size=4))
def test_distinct_hashes_are_counted_once_over_all_parts(parts: list[list[int]]) -> None:
    def joined(a: Distinct, b: Distinct) -> Distinct:
        a.absorb(b)
        return a

    whole = [value for part in parts for value in part]
    merged = reduce(joined, map(distinct, parts), Distinct())
    assert merged == distinct(whole)
    assert len(merged) == len(Counter(whole))
