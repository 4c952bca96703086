"""How many replicas there are, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from serve.autoscaling import FEWEST, IN_FLIGHT, MOST, History, Pace, Policy, decide

BOUNDS = (FEWEST, MOST)
PACE = Pace()
TICK = 5.0


def simulate(
    wanted: Callable[[float], int], seconds: float, start: int = FEWEST
) -> list[tuple[float, int]]:
    """The number of replicas after every tick, as (time, replicas)."""
    history, target, counts = History(), start, []
    for tick in range(int(seconds / TICK)):
        target, history = decide(history, tick * TICK, wanted(tick * TICK), target, BOUNDS, PACE)
        counts.append((tick * TICK, target))
    return counts


def changes(counts: Iterable[tuple[float, int]], start: int = FEWEST) -> list[tuple[float, int]]:
    found = []
    for now, count in counts:
        if count != start:
            found.append((now, count - start))
        start = count
    return found


def test_it_grows_after_half_a_minute_by_four_a_minute() -> None:
    counts = simulate(lambda now: 100, 400)
    assert changes(counts) == [(30, 4), (90, 4), (150, 4), (210, 4), (270, 1)]


def test_it_shrinks_after_five_minutes_by_two_in_two_minutes() -> None:
    counts = simulate(lambda now: 0, 1_100, start=10)
    assert changes(counts, start=10) == [(300, -2), (420, -2), (540, -2), (660, -1)]


def test_a_short_burst_changes_nothing() -> None:
    assert not changes(simulate(lambda now: 20 if 100 <= now < 125 else 3, 900))


def test_a_short_lull_takes_nothing_away() -> None:
    # Every four minutes all ten are wanted once: never five minutes without.
    assert not changes(simulate(lambda now: 10 if now % 240 == 0 else 3, 3_000, start=10), start=10)


def test_it_grows_to_what_was_wanted_all_the_time_not_to_the_peak() -> None:
    counts = simulate(lambda now: 6 if now % 20 else 20, 600)
    assert changes(counts) == [(30, 3)]


def test_what_is_left_of_a_minute_is_used_at_once() -> None:
    # Two at 30 s, two more when they are wanted 20 s later, then the minute is over.
    counts = simulate(lambda now: 5 if now < 20 else 20, 100)
    assert changes(counts) == [(30, 2), (50, 2), (90, 2)]


def test_a_clock_that_is_set_back_only_delays() -> None:
    history, target = History(), FEWEST
    for now in (1_000.0, 1_020.0, 400.0, 420.0):
        target, history = decide(history, now, 20, target, BOUNDS, Pace())
        assert target == FEWEST
    target, _ = decide(history, 430.0, 20, target, BOUNDS, Pace())
    assert target == FEWEST + 4


wanted_over_time = st.lists(
    st.tuples(st.floats(0.1, 400), st.integers(0, 40)), min_size=1, max_size=120
)
bounds = st.tuples(st.integers(1, 5), st.integers(5, 25))


@given(wanted_over_time, bounds, st.integers(0, 30))
def test_never_out_of_bounds_and_never_faster_than_said(
    steps: list[tuple[float, int]], bounds: tuple[int, int], start: int
) -> None:
    pace, history, now = Pace(), History(), 0.0
    target = min(max(start, bounds[0]), bounds[1])
    done: list[tuple[float, int]] = []
    for wait, wanted in steps:
        now += wait
        count, history = decide(history, now, wanted, target, bounds, pace)
        assert bounds[0] <= count <= bounds[1]
        assert len(history.least) <= MOST + 10
        assert len(history.most) <= MOST + 10
        done.append((now, count - target))
        target = count
    for first, _ in done:
        minute = [n for at, n in done if first <= at < first + pace.up_every]
        assert sum(n for n in minute if n > 0) <= pace.up_most
        two_minutes = [n for at, n in done if first <= at < first + pace.down_every]
        assert -sum(n for n in two_minutes if n < 0) <= pace.down_most


@given(wanted_over_time)
def test_a_replica_is_added_only_where_it_was_wanted_all_the_time(
    steps: list[tuple[float, int]],
) -> None:
    pace, history, now, target = Pace(), History(), 0.0, FEWEST
    seen: list[tuple[float, int]] = []
    for wait, wanted in steps:
        now += wait
        seen.append((now, wanted))
        count, history = decide(history, now, wanted, target, BOUNDS, PACE)
        if count > target:
            # What was wanted half a minute ago is what the last look before it said.
            earlier = [place for place, (at, _) in enumerate(seen) if at <= now - pace.up_after]
            assert earlier
            assert min(w for _, w in seen[earlier[-1] :]) >= count
        if count < target:
            earlier = [place for place, (at, _) in enumerate(seen) if at <= now - pace.down_after]
            assert earlier
            assert max(max(w, FEWEST) for _, w in seen[earlier[-1] :]) <= count
        target = count


@given(st.integers(0, 400))
def test_steady_load_ends_with_as_many_as_it_needs(requests: int) -> None:
    needed = -(-requests // IN_FLIGHT)
    counts = simulate(lambda now: needed, 4_000, start=12)
    assert counts[-1][1] == min(max(needed, FEWEST), MOST)


def context(requests: float, state: dict[str, object], now: float, target: int) -> SimpleNamespace:
    return SimpleNamespace(
        policy_state=state,
        current_time=now,
        total_num_requests=requests,
        target_num_replicas=target,
        capacity_adjusted_min_replicas=FEWEST,
        capacity_adjusted_max_replicas=MOST,
        config=SimpleNamespace(get_target_ongoing_requests=lambda: float(IN_FLIGHT)),
    )


def test_the_policy_counts_requests_and_keeps_its_history_in_serves_hands() -> None:
    policy, target = Policy(up_after=10), FEWEST
    state: dict[str, object] = {}
    for now in range(12):
        target, state = policy(context(41.0, dict(state), float(now), target))
    assert target == 5
