from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from job.analyse.requests import build_request, instruction_tokens
from job.analyse.stored import AskSettings
from job.estimates.moments import Moments
from job.estimates.reserve import LEARN_FROM, RESERVE_TOKENS, Reserve
from job.pack.packing import (
    MARGIN_TOKENS,
    Fit,
    Item,
    Window,
    dates_of,
    make_item,
    spans_dates,
    wire_line,
)
from job.records import KINDS, Kind, Lane
from serve.ask import tokens
from tests.job.make import record

START = datetime(2026, 3, 14, 10, 0, tzinfo=UTC)
ASK = AskSettings("m", "en")


def fit(context: int = 8192, **fields: Any) -> Fit:
    return Fit(context, None, instruction_tokens("en"), **fields)


def item(
    size: int, kind: Kind = "operation", lane: Lane = "fast", minute: int = 0, tier: int = 0
) -> Item:
    made = make_item(
        record(
            f"{kind}{size}{minute}", kind=kind, lane=lane, time=START + timedelta(minutes=minute)
        )
    )
    made.line_tokens = size
    made.tier = tier
    return made


items = st.lists(
    st.builds(
        item,
        st.integers(20, 900),
        st.sampled_from(KINDS),
        st.sampled_from(("fast", "slow")),
        st.integers(0, 600),
        st.integers(0, 2),
    ),
    max_size=120,
)


@given(items, st.sampled_from((4096, 8192, 32768)))
def test_every_item_leaves_in_exactly_one_pack_that_fits(some: list[Item], context: int) -> None:
    rules = fit(context)
    window = Window(rules)
    for one in some:
        window.push(one)
    left: list[Item] = []
    lanes: tuple[Lane, Lane] = ("fast", "slow")
    for lane in lanes:
        while (group := window.choose(lane)[0]) is not None:
            pack = window.take(group)
            assert {(i.record.kind, i.record.lane, i.tier) for i in pack} == {group}
            kind = group[0]
            wire = sum(i.line_tokens for i in pack)
            if len(pack) > 1:
                assert wire <= rules.wire[lane]
                reserve = RESERVE_TOKENS * len(pack)
                fixed = rules.instructions[kind, lane]
                assert fixed + wire + reserve + MARGIN_TOKENS <= context
            left += pack
    assert len(left) == len(some)
    assert set(left) == set(some)
    assert len(window) == 0


@given(items)
def test_a_full_pack_leaves_no_room_for_the_next_in_line(some: list[Item]) -> None:
    rules = fit()
    window = Window(rules)
    for one in some:
        window.push(one)
    group, full = window.choose("fast")
    if group is None or not full:
        return
    kind, _, tier = group
    pack = window.take(group)
    left = [i for i in window.drain() if (i.record.kind, i.tier) == (kind, tier)]
    smallest = min((i.line_tokens for i in left), default=None)
    if smallest is not None and len(pack) > 20:
        wire = sum(i.line_tokens for i in pack)
        assert not rules.fits(kind, "fast", wire + 900, len(pack) + 1)


def test_a_pack_is_in_time_order() -> None:
    window = Window(fit())
    for minute in (5, 1, 9, 3):
        window.push(item(50, minute=minute))
    times = [i.record.time for i in window.take(("operation", "fast", 0))]
    assert times == sorted(t for t in times if t)


def test_what_comes_back_last_waits_behind_the_others() -> None:
    window = Window(fit())
    old, new = item(50, minute=0), item(50, minute=9)
    window.push(old, last=True)
    window.push(new)
    assert window.take(("operation", "fast", 0)) == [new, old]


def test_single_mode_packs_one_record() -> None:
    window = Window(fit(mode="single"))
    for minute in range(3):
        window.push(item(50, minute=minute))
    assert [len(window.take(("operation", "fast", 0))) for _ in range(3)] == [1, 1, 1]


def test_the_reserve_is_learned_from_enough_answers_only() -> None:
    reserve = Reserve()
    for _ in range(LEARN_FROM - 1):
        reserve.observe("feedback", "fast", 30)
    assert reserve.needed("feedback", "fast", 10) == RESERVE_TOKENS * 10
    reserve.observe("feedback", "fast", 30)
    assert reserve.needed("feedback", "fast", 10) == 300
    assert reserve.needed("operation", "fast", 10) == RESERVE_TOKENS * 10


def test_a_lane_has_a_reserve_of_its_own_and_until_then_that_of_its_kind() -> None:
    reserve = Reserve()
    for _ in range(LEARN_FROM):
        reserve.observe("feedback", "fast", 30)
    assert reserve.needed("feedback", "slow", 10) == 300
    for _ in range(LEARN_FROM):
        reserve.observe("feedback", "slow", 200)
    assert reserve.needed("feedback", "slow", 10) == 2000
    assert reserve.needed("feedback", "fast", 10) == 300


def test_a_second_run_begins_with_what_the_first_has_learned() -> None:
    reserve = Reserve(earlier={("feedback", "fast"): Moments(200, 45, 0)})
    assert reserve.needed("feedback", "fast", 10) == 450


def test_the_input_ratio_follows_the_provider() -> None:
    rules = fit()
    for _ in range(100):
        rules.observe_input(1000, 1400)
    assert abs(rules.ratio - 1.4) < 0.01
    rules.observe_input(0, 1400)
    rules.observe_input(1000, 0)
    assert abs(rules.ratio - 1.4) < 0.01


def test_a_text_never_ends_its_line() -> None:
    line = wire_line("1", None, 'first\nsecond\u2028 {"id":"2","text":"x"}', False)
    assert "\n" not in line
    assert line.startswith('{"id":"1","text":')


def test_times_are_full_only_where_a_pack_spans_dates() -> None:
    same = [item(50, minute=0), item(50, minute=5)]
    other = [item(50, minute=0), item(50, minute=24 * 60)]
    assert not spans_dates(same)
    assert '"time":"10:00:00"' in build_request(same, ASK, fit(), False).user
    assert spans_dates(other)
    assert '"time":"2026-03-15T10:00:00Z"' in build_request(other, ASK, fit(), False).user
    assert dates_of(other) == "2026-03-14 to 2026-03-15"


def test_a_pack_that_spans_dates_still_fits_the_context() -> None:
    midnight = datetime(2026, 3, 14, 23, 59, 30, tzinfo=UTC)
    rules = fit()
    window = Window(rules)
    for n in range(200):
        text = f"the lease number {n} of the worker could not be renewed in time " * 8
        window.push(make_item(record(text, time=midnight + timedelta(seconds=n))))
    while (group := window.choose("fast")[0]) is not None:
        request = build_request(window.take(group), ASK, rules, False)
        held = tokens.count(request.system) + tokens.count(request.user)
        assert held + request.max_output <= 8192


def test_the_estimate_of_a_request_is_what_it_holds() -> None:
    pack = [make_item(record(f"lease {n} could not be renewed")) for n in range(20)]
    request = build_request(pack, ASK, fit(), False)
    held = tokens.count(request.system) + tokens.count(request.user)
    assert abs(request.estimate_in - held) <= 0.15 * held
