"""The window of a run that may not get round to all its records."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.analyse.outcomes import Outcomes
from job.analyse.requests import instruction_tokens
from job.analyse.routing import Routing
from job.analyse.stored import AskSettings
from job.analyse.waiting import Waiting
from job.extractive import analyse
from job.instructions import Language
from job.pack.packing import Fit, Item, make_item
from job.progress import Progress
from job.ration.importance import Importance, importance, rank_of, ranks_in, with_ranks
from job.ration.window import RationedWindow
from job.records import (
    KINDS,
    LANES,
    Answer,
    Kind,
    Lane,
    Record,
    records_to_table,
    table_to_records,
)
from tests.job.dispatching import MemoryStore
from tests.job.make import record

START = datetime(2026, 3, 14, 10, 0, tzinfo=UTC)
FIT = Fit(8192, None, instruction_tokens("en"))


def item(
    number: int, kind: Kind = "operation", lane: Lane = "fast", level: str | None = "info"
) -> Item:
    time = START + timedelta(minutes=number)
    made = make_item(record(f"request {number}", kind=kind, lane=lane, level=level, time=time))
    made.line_tokens = 100
    return made


def window_of(*items: Item) -> RationedWindow:
    window = RationedWindow(FIT)
    for each in items:
        window.push(each)
    return window


def test_nothing_is_handed_out_while_something_more_important_waits_in_either_lane() -> None:
    error, chat = item(1, lane="slow", level="error"), item(2, kind="conversation")
    window = window_of(chat, error)
    assert window.choose("fast") == (None, False)
    group, full = window.choose("slow")
    assert group is not None
    assert full  # it will not grow: what came after it is less important
    assert window.take(group) == [error]
    assert window.choose("fast")[0] is not None
    assert window.choose("slow") == (None, False)


def test_a_pack_that_may_still_grow_is_not_full() -> None:
    group, full = window_of(item(1, level="error")).choose("fast")
    assert group is not None
    assert not full


def test_of_one_class_the_order_is_not_that_of_time_but_a_pack_is_in_time_order() -> None:
    some = [item(n) for n in range(200)]
    window = window_of(*some)
    group, _ = window.choose("fast")
    assert group is not None
    pack = window.take(group)
    assert 1 < len(pack) < 100
    assert {id(each) for each in pack} == {
        id(each) for each in sorted(some, key=lambda each: rank_of(each.record))[: len(pack)]
    }
    times = [each.record.time for each in pack]
    assert times == sorted(times, key=str)


items = st.lists(
    st.builds(
        item,
        st.integers(0, 500),
        st.sampled_from(KINDS),
        st.sampled_from(LANES),
        st.sampled_from(("info", "error")),
    ),
    max_size=60,
)


@given(items)
def test_every_item_leaves_once_in_the_order_of_its_class(some: list[Item]) -> None:
    window = window_of(*some)
    assert len(window) == len(some) == sum(window.waiting(lane) for lane in LANES)
    left: list[Item] = []
    while len(window):
        group = next(found for lane in LANES if (found := window.choose(lane)[0]) is not None)
        assert window.count(group)
        assert window.tokens(group)
        pack = window.take(group)
        assert len({importance(each.record) for each in pack}) == 1
        left += pack
    classes: list[Importance] = [importance(each.record) for each in left]
    assert classes == sorted(classes)
    assert sorted(map(id, left)) == sorted(map(id, some))


def test_a_rank_that_comes_with_a_record_is_not_worked_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block = with_ranks(records_to_table([record("connection refused", level="info"), record("x")]))
    records, ranks = table_to_records(block), ranks_in(block)
    assert ranks is not None

    async def push() -> list[int | None]:
        waiting = Waiting(FIT, rationed=True)
        settings, routing = AskSettings("m", "en"), Routing(("m",), (None,))
        outcomes = Outcomes(
            MemoryStore(), settings, FIT, waiting, routing, Progress(), lambda: None
        )
        _, fresh = outcomes.admit(records, ranks)
        await outcomes.recall(fresh)
        return [each.rank for each in (*waiting.take_pack("fast").items, *waiting.drain())]

    monkeypatch.setattr("job.ration.importance.analyse", lambda *_: pytest.fail("worked out"))
    assert asyncio.run(push()) == ranks


def test_a_rank_that_no_one_gave_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Record] = []

    def analysed(record: Record, language: Language) -> Answer:
        calls.append(record)
        return analyse(record, language)

    monkeypatch.setattr("job.ration.importance.analyse", analysed)
    some = item(1)
    window = window_of(some)
    group, _ = window.choose("fast")
    assert group is not None
    for each in window.take(group):
        window.push(each)
    assert calls == [some.record]


def test_what_is_drained_is_gone() -> None:
    some = [item(1), item(2, kind="feedback")]
    window = window_of(*some)
    assert {id(each) for each in window.drain()} == set(map(id, some))
    assert len(window) == 0
    assert window.choose("fast") == (None, False)
