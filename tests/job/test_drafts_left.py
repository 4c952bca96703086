"""Usable answers with an empty field that are there when the asking stops: used, and not lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from job.analyse.contract import Escalate, Split, Together, Wait
from job.analyse.outcomes import Outcomes
from job.analyse.requests import instruction_tokens
from job.analyse.routing import Routing
from job.analyse.stored import AskSettings, decode, record_key
from job.analyse.waiting import Waiting
from job.pack.packing import Fit
from job.progress import Progress
from job.records import Answer
from tests.job.dispatching import MemoryStore
from tests.job.make import record

ASK = AskSettings("m", "en")
DRAFT = Answer("problem")


class BrokenStore(MemoryStore):
    """A store that cannot be written to."""

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        raise OSError("disk full")


def outcomes_in(store: MemoryStore) -> Outcomes:
    fit = Fit(8192, None, instruction_tokens("en"))
    routing = Routing(("m",), (None,))
    return Outcomes(store, ASK, fit, Waiting(fit), routing, Progress(), lambda: None)


@pytest.mark.parametrize("end", [lambda each: each.stop("cap"), lambda each: each.leave_all()])
async def test_a_draft_is_stored_before_it_is_used_at_a_stop(
    end: Callable[[Outcomes], None],
) -> None:
    store = MemoryStore()
    outcomes = outcomes_in(store)
    paid, other = record("order 1 lost"), record("order 2 lost")
    ends, fresh = outcomes.admit([paid, other, record("order 1 lost", position=9)])
    await outcomes.recall(fresh)
    item = next(each for each in outcomes._owners if each.record is paid)
    item.draft, item.drafted_by = DRAFT, "m"
    end(outcomes)
    assert not ends[0].done()
    await outcomes.settle()
    assert [each.result().via for each in ends] == ["review", "unasked", "review"]
    stored = {key: decode(value) for key, value in store.held.items()}
    kept = stored.pop(record_key(paid, ASK))
    assert kept is not None
    assert (kept.answer, kept.review) == (DRAFT, True)
    assert stored == {}
    again = outcomes_in(store)
    (recalled,), fresh = again.admit([paid])
    await again.recall(fresh)
    assert (recalled.result().via, again.idle) == ("review", True)


async def test_drafts_of_all_parts_of_a_record_are_its_answer() -> None:
    outcomes = outcomes_in(MemoryStore())
    (end,), fresh = outcomes.admit([record("order 1 lost")])
    await outcomes.recall(fresh)
    (entry,) = fresh
    (item,) = entry.open
    part = replace(item, part=(1,), draft=DRAFT)
    outcomes._own(part, entry)
    outcomes.leave(part)
    assert end.result().via == "unasked"
    (end,), fresh = outcomes.admit([record("order 2 lost")])
    await outcomes.recall(fresh)
    (entry,) = fresh
    (item,) = entry.open
    item.draft = DRAFT
    outcomes._own(replace(item, part=(1,), draft=DRAFT), entry)
    outcomes.leave_all()
    await outcomes.settle()
    assert (end.result().via, end.result().outcome) == ("review", "problem")


async def test_a_part_whose_record_ended_while_it_was_on_the_wire_changes_nothing() -> None:
    outcomes = outcomes_in(MemoryStore())
    (end,), fresh = outcomes.admit([record("order 1 lost")])
    await outcomes.recall(fresh)
    (entry,) = fresh
    (item,) = entry.open
    part = replace(item, part=(1,))
    outcomes._own(part, entry)
    outcomes.leave(item, "late")
    for step in (Split(part), Wait((part,)), Together((part,)), Escalate(part)):
        await outcomes.do([step], "m")
    assert (end.result().via, outcomes.idle) == ("unasked", True)


async def test_a_draft_ends_its_record_where_the_store_fails() -> None:
    outcomes = outcomes_in(BrokenStore())
    ends, fresh = outcomes.admit([record("order 1 lost"), record("order 2 lost")])
    await outcomes.recall(fresh)
    next(iter(outcomes._owners)).draft = DRAFT
    outcomes.stop("cap")
    await outcomes.settle()
    assert sorted(each.result().via for each in ends) == ["review", "unasked"]
