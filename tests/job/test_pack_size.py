"""The pack size that finds itself, against a provider in simulated time."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.pack.cost import Pack, Rates
from job.pack.grid import LEAST_TOKENS, tokens_of
from job.pack.size import MOST_AGAIN, PackSize
from tests.job.pack_world import (
    ALONE,
    ARTICLE,
    HELD,
    REQUESTS,
    SMALL,
    SMALLEST,
    TOKENS,
    Curve,
    Unreliable,
    World,
    at,
    curve,
    fed,
)

curves = st.builds(
    curve,
    st.sampled_from((0.0, 0.0, 0.002)),
    st.floats(0.0005, 0.045),
    st.floats(1.0, 4.0),
)


@settings(max_examples=6)
@given(lost=curves, rates=st.sampled_from((REQUESTS, TOKENS, ALONE)))
def test_it_comes_within_a_tenth_of_the_best_size_that_loses_few_rows(
    lost: Curve, rates: Rates
) -> None:
    size = PackSize(rates)
    World(rates, lost).run(6000, size)
    grid = [tokens_of(step) for step in range(-7, 4)]
    assert SMALLEST <= size.wire["fast"] <= HELD
    good = [one for one in grid if at(lost, one) <= 0.7 * MOST_AGAIN] or [SMALLEST]
    best = min(World(rates, lost).run(3000, one) for one in good)
    assert World(rates, lost).run(3000, size.wire["fast"]) <= 1.1 * best
    seen = size.facts()["by_size"]
    again, rows = (sum(one[name] for one in seen) for name in ("again", "rows"))
    assert again <= 1.5 * MOST_AGAIN * rows


packs = st.builds(
    lambda wire, rows, share, seconds, whole: Pack(
        wire, rows, round(rows * share), int(wire) + 260, rows * 40, seconds, whole
    ),
    wire=st.floats(1, 50_000),
    rows=st.integers(1, 500),
    share=st.floats(0, 1),
    seconds=st.floats(0, 600),
    whole=st.booleans(),
)


@settings(max_examples=20)
@given(
    seen=st.lists(packs, max_size=40),
    rpm=st.none() | st.floats(0.1, 10_000),
    tpm=st.none() | st.floats(100, 1e7),
    context=st.integers(2048, 100_000),
    max_output=st.none() | st.integers(1, 10_000),
)
def test_it_never_leaves_what_makes_sense_and_what_the_context_holds(
    seen: list[Pack], rpm: float | None, tpm: float | None, context: int, max_output: int | None
) -> None:
    size = PackSize(Rates(rpm, tpm, 5, context, max_output))
    for pack in seen:
        size.observe(pack)
        assert LEAST_TOKENS <= size.wire["fast"] <= max(5000, context)
        assert size.wire["slow"] == size.wire["fast"] * 4 // 5
    learned = json.loads(json.dumps(size.state()))
    again = PackSize.from_state(learned, size.rates)
    assert LEAST_TOKENS <= again.wire["fast"] <= size.wire["fast"]
    assert again.facts()["changes"] == [{"rows": 0, "tokens": again.wire["fast"]}]
    assert json.loads(json.dumps(size.facts()))["tokens"]["fast"] == size.wire["fast"]


def test_it_starts_at_five_thousand_tokens_and_four_in_the_slow_lane() -> None:
    assert PackSize(REQUESTS).wire == {"fast": 5000, "slow": 4000}


def test_under_a_request_limit_it_grows_as_far_as_the_context_holds() -> None:
    size = PackSize(REQUESTS)
    fed(size, 40)
    assert (size.wire["fast"], size.why, size.limit) == (HELD, "context", "requests")


def test_it_grows_one_step_at_a_time_and_only_after_a_hundred_good_rows() -> None:
    size, world = PackSize(REQUESTS), World(REQUESTS)
    world.run(3000, size)
    grown = size.facts()["changes"]
    assert [change["tokens"] for change in grown] == [5000, 6250, 7812, 9766]
    for change in grown[:-1]:
        seen = next(one for one in size.facts()["by_size"] if one["tokens"] == change["tokens"])
        assert seen["rows"] >= 100


def test_under_a_token_limit_it_does_not_grow_for_next_to_nothing() -> None:
    size = PackSize(TOKENS)
    fed(size, 60)
    assert (size.wire["fast"], size.why, size.limit) == (5000, "enough", "tokens")


def test_where_rows_get_lost_as_in_the_article_it_stays_below_the_knee() -> None:
    size = PackSize(REQUESTS)
    World(REQUESTS, ARTICLE).run(6000, size)
    assert size.wire["fast"] in (4000, 5000)
    assert size.why == "rows"


def test_rows_that_get_lost_whatever_the_size_do_not_shrink_packs_for_good() -> None:
    flat = ((1, 0.05),)
    size, world = PackSize(REQUESTS), World(REQUESTS, flat)
    seconds = world.run(6000, size)
    assert min(world.sizes) < 5000, "it has to try smaller packs to find out"
    assert size.wire["fast"] >= 5000
    assert seconds <= 1.1 * World(REQUESTS, flat).run(6000, 5000)


@pytest.mark.parametrize("good", [0, 10, 100, 1000])
def test_a_burst_of_cut_answers_brings_it_down_within_five_packs(good: int) -> None:
    size = PackSize(TOKENS)
    fed(size, good)
    assert size.wire["fast"] == 5000
    for _ in range(5):
        fed(size, 1, lost=0.5, whole=False)
    assert size.wire["fast"] <= 4000
    assert size.why == "cuts"


def test_one_cut_answer_among_many_good_ones_changes_nothing() -> None:
    size = PackSize(TOKENS)
    for _ in range(20):
        fed(size, 30)
        fed(size, 1, lost=0.5, whole=False)
    assert [change["tokens"] for change in size.facts()["changes"]] == [5000]


def test_after_a_burst_of_cut_answers_it_comes_back() -> None:
    size, world = PackSize(REQUESTS), World(REQUESTS, cut=lambda call: 30 <= call < 45)
    world.run(10_000, size)
    assert min(world.sizes[30:80]) < HELD
    assert size.wire["fast"] == HELD


@pytest.mark.parametrize("seed", range(2))
def test_it_does_not_go_up_and_down_for_ever_beside_the_bound(seed: int) -> None:
    """Losses at the bound itself, by chance, and calls that take now long, now short."""
    rng, size = random.Random(seed), PackSize(REQUESTS)
    lost = curve(0.0, MOST_AGAIN, 2.0)
    while size.rows < 24_000:
        wire = size.wire["fast"]
        rows = wire // 130
        again = sum(rng.random() < at(lost, wire) for _ in range(rows))
        seconds = wire / 1300 * rng.lognormvariate(0, 0.5)
        size.observe(Pack(wire, rows, again, wire + 260, rows * 45, seconds))
    moves = [change["rows"] for change in size.facts()["changes"]]
    assert len(moves) <= 25
    assert sum(move > 12_000 for move in moves) <= 10


def test_calls_of_any_length_turn_it_for_speed_ever_more_rarely() -> None:
    """A limiter that cannot make up its mind: the limit comes and goes with every tenth call."""
    size = PackSize(REQUESTS)
    for call in range(600):
        size.rates = REQUESTS if call // 10 % 2 else ALONE
        fed(size, 1)
    moves = [change["tokens"] for change in size.facts()["changes"]]
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(moves, moves[1:], moves[2:], strict=False))
    assert turns <= 15


def test_the_next_run_begins_where_this_one_came_to() -> None:
    first, second = World(REQUESTS), World(REQUESTS)
    size = PackSize(REQUESTS)
    before = first.run(2000, size)
    known = PackSize.from_state(json.loads(json.dumps(size.state())), REQUESTS)
    assert known.wire["fast"] == HELD
    assert second.run(2000, known) < before
    assert set(second.sizes) == {HELD}


def test_what_was_found_for_a_bigger_context_is_cut_to_the_present_one() -> None:
    size = PackSize(REQUESTS)
    World(REQUESTS).run(2000, size)
    assert PackSize.from_state(size.state(), SMALL).wire["fast"] == 5000


def test_answers_spoilt_whatever_their_size_hardly_make_packs_smaller() -> None:
    """One pack in five is cut or lacks a tenth of its rows: on average the controller takes at most
    a fifth more calls than a fixed size."""
    calls = {True: 0, False: 0}
    for seed in range(16):
        for found in calls:
            world = Unreliable(SMALL, row=100, chance=random.Random(seed))
            world.run(3000, PackSize(SMALL) if found else 5000)
            calls[found] += world.calls
    assert calls[True] <= 1.2 * calls[False]


def test_a_bad_day_of_long_ago_is_forgotten() -> None:
    size = PackSize(REQUESTS)
    fed(size, 10, lost=0.2)
    assert size.wire["fast"] < 5000
    known = PackSize.from_state(size.state(), REQUESTS)
    World(REQUESTS).run(6000, known)
    assert known.wire["fast"] == HELD


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"version": 2},
        {"version": 1, "step": 3},
        {"version": 1, "step": "x", "seen": {}, "bars": {}, "cost": {"all": {}, "by_size": {}}},
        {"version": 1, "step": 1, "seen": [], "bars": {}, "cost": {"all": {}, "by_size": {}}},
        {
            "version": 1,
            "step": 1,
            "seen": {"1": {"rows": -5, "bad": 0, "cut": 0}},
            "bars": {},
            "cost": {"all": {}, "by_size": {}},
        },
        {
            "version": 1,
            "step": 1,
            "seen": {"900": {"rows": 5, "bad": 0, "cut": 0}},
            "bars": {},
            "cost": {"all": {}, "by_size": {}},
        },
        {
            "version": 1,
            "step": 1,
            "seen": {"1": {"rows": 5, "bad": 50, "cut": 0}},
            "bars": {},
            "cost": {"all": {}, "by_size": {}},
        },
        {
            "version": 1,
            "step": 1,
            "seen": {},
            "bars": {},
            "cost": {"all": {"calls": 3}, "by_size": {}},
        },
    ],
)
def test_what_no_run_wrote_is_no_reason_to_fail(state: dict[str, Any] | None) -> None:
    assert PackSize.from_state(state, REQUESTS).wire["fast"] == 5000


def test_answers_that_take_too_long_keep_packs_small() -> None:
    slow = [(tokens, seconds * 7) for tokens, seconds in ((100, 0.8), (16_000, 13.0))]
    size = PackSize(REQUESTS)
    World(REQUESTS, latency=slow).run(6000, size)
    assert size.why == "seconds"
    assert size.wire["fast"] == 5000


def test_what_is_shown_adds_up() -> None:
    size = PackSize(REQUESTS)
    for rows, lost in itertools.product((4, 7), (0.0, 0.2)):
        fed(size, rows, lost)
    shown = size.facts()["by_size"]
    assert sum(one["calls"] for one in shown) == 22
    assert sum(one["rows"] for one in shown) == size.rows
    assert [one["tokens"] for one in shown] == sorted(one["tokens"] for one in shown)
