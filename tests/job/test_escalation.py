"""What a weaker model cannot answer goes to the next one, and still ends exactly once."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.analyse.contract import (
    MAX_CUT_ALONE,
    MAX_ROUNDS,
    Escalate,
    Fail,
    Keep,
    Sent,
    Split,
    Step,
    Stop,
    Together,
    Wait,
    after_error,
    after_reply,
)
from job.pack.packing import Item, make_item
from job.records import Answer
from job.validate import Verdict
from serve.ask.errors import AskError, ContextOverflow, Refused, Unavailable
from tests.job.make import record

WEAK = Sent(higher=True, model="small")
REPAIR = Sent(repair=True, higher=True, model="small")
GOOD, EMPTY = Answer("normal"), Answer("problem")


def one(**fields: object) -> dict[str, Item]:
    item = make_item(record())
    for name, value in fields.items():
        setattr(item, name, value)
    return {"1": item}


def test_an_unusable_answer_to_a_record_alone_goes_up_at_once() -> None:
    items = one()
    wrong = Verdict(wrong={"1": "unusable"})
    assert after_reply(items, wrong, WEAK) == [Escalate(items["1"])]
    assert items["1"].alone == 0


def test_in_a_pack_it_is_asked_alone_first() -> None:
    items = {str(n): make_item(record(f"disk {n} is full")) for n in (1, 2)}
    wrong = Verdict(answers={"1": GOOD}, wrong={"2": "unusable"})
    assert Wait((items["2"],)) in after_reply(items, wrong, WEAK)
    assert Together((items["2"],)) in after_reply(items, wrong, WEAK)


def test_a_field_that_a_repair_leaves_empty_goes_up_with_its_answer_in_hand() -> None:
    items = one()
    incomplete = Verdict(incomplete={"1": EMPTY})
    assert after_reply(items, incomplete, WEAK) == [Together((items["1"],), repair=True)]
    assert after_reply(items, incomplete, REPAIR) == [Escalate(items["1"])]
    assert (items["1"].draft, items["1"].drafted_by) == (EMPTY, "small")


def test_the_last_model_keeps_the_answer_of_a_weaker_one_for_review_before_it_fails_a_record() -> (
    None
):
    items = one(draft=EMPTY, drafted_by="small", alone=2)
    wrong = Verdict(wrong={"1": "unusable"})
    kept = Keep(items["1"], EMPTY, review=True, by="small")
    assert after_reply(items, wrong, Sent(model="large")) == [kept]
    assert after_error([items["1"]], Refused("policy"), Sent(model="large")) == [kept]


def test_an_answer_cut_alone_goes_up_once_there_is_no_room() -> None:
    items = one()
    cut = Verdict(wrong={"1": "missing"}, whole=False)
    assert after_reply(items, cut, WEAK) == [Together((items["1"],))]
    no_room = Sent(higher=True, room_left=False)
    assert after_reply(items, cut, no_room) == [Escalate(items["1"])]


@pytest.mark.parametrize(
    ("error", "step"),
    [(Refused("I cannot help", 200), Escalate), (Refused("content policy", 400), Fail)],
)
def test_a_refusal_goes_up_if_the_model_spoke_and_not_if_the_provider_did(
    error: AskError, step: type[Step]
) -> None:
    assert [type(found) for found in after_error(list(one().values()), error, WEAK)] == [step]


def test_a_failing_provider_is_no_reason_to_ask_a_dearer_model() -> None:
    (item,) = one(rounds=MAX_ROUNDS - 1).values()
    assert [type(s) for s in after_error([item], Unavailable("down"), WEAK)] == [Fail]


def _items_of(step: Step) -> Sequence[Item]:
    return step.items if isinstance(step, Wait | Together | Stop) else (step.item,)


def _reply(items: Sequence[Item], rng: random.Random) -> Verdict:
    """Any verdict that `validate` could give."""
    verdict = Verdict(whole=rng.random() < 0.7)
    for n in range(1, len(items) + 1):
        match rng.randrange(4):
            case 0:
                verdict.answers[str(n)] = GOOD
            case 1:
                verdict.incomplete[str(n)] = EMPTY
            case _:
                verdict.wrong[str(n)] = rng.choice(("missing", "doubled", "unusable"))
    return verdict


def _steps(items: Sequence[Item], sent: Sent, rng: random.Random) -> list[Step]:
    if rng.random() < 0.6:
        local = {str(n): item for n, item in enumerate(items, 1)}
        return after_reply(local, _reply(items, rng), sent)
    errors: list[AskError] = [
        Unavailable("down"),
        Refused("no", 400),
        Refused("no", 200),
        ContextOverflow("long"),
    ]
    return after_error(items, rng.choice(errors), sent)


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 2**32))
def test_whatever_comes_back_each_record_ends_once_and_is_not_asked_for_ever(
    records: int, models: int, seed: int
) -> None:
    rng = random.Random(seed)
    ended: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    everything = [make_item(record(f"disk {n} is full")) for n in range(records)]
    queue = deque([Together(tuple(everything))])
    while queue:
        batch = queue.popleft()
        last = batch.items[0].tier == models - 1
        asked.update(map(id, batch.items))
        sent = Sent(batch.repair, rng.random() < 0.5, not last, f"model {batch.items[0].tier}")
        steps = _steps(batch.items, sent, rng)
        named = [item for step in steps for item in _items_of(step)]
        assert Counter(map(id, named)) == Counter(map(id, batch.items))
        for step in steps:
            match step:
                case Wait(items):
                    queue.append(Together(items))
                case Together():
                    queue.append(step)
                case Escalate(item):
                    assert not last
                    item.tier += 1
                    queue.append(Together((item,)))
                case Keep(item) | Fail(item) | Split(item):
                    ended[id(item)] += 1
                    if isinstance(step, Fail | Split):
                        assert item.draft is None
    assert ended == Counter(map(id, everything))
    # At each model: halved down to one, again alone or with more room, a repair; and the rounds.
    halvings = records.bit_length() + 1
    assert max(asked.values()) <= models * (halvings + 2 + MAX_CUT_ALONE + halvings) + MAX_ROUNDS
