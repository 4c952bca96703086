"""The pack contract: what came back, or went wrong -> what is done with each item. Pure.

Invariant: the steps for a pack name every one of its items exactly once. An answer that came back
good is kept whatever happened to its neighbours; no item is asked for ever (three rounds with a
failing provider, three times alone with an unusable answer, five with one that was cut, and so once
for each model); the bytes of a request whose answer was cut or broken are never sent to the same
model again (the items go in halves, and one alone with more room). A usable answer is never thrown
away: where nothing better follows it is kept for review.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from job.pack.packing import Item
from job.records import Answer
from job.validate import Verdict
from serve.ask.errors import (
    AskError,
    CapReached,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    Refused,
    Stopped,
    Unavailable,
)

MAX_ROUNDS = 3
"""Rounds (of four attempts each) that a failing provider gets for a record."""
MAX_ALONE = 3
"""Unusable answers to a record asked by itself before it fails; where a more powerful model is left
to ask, one is enough."""
MAX_CUT_ALONE = 5
"""Cut or broken ones, each asked for with twice the room of the one before."""
ANSWERED = 200
"""Status of a refusal that the model itself gave."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The answer is used; `review`: a person should look, a required field stayed empty. `by`: the
    model that gave it, where that is not the one that was just asked."""

    item: Item
    answer: Answer
    review: bool = False
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The record fails. `message`: the provider's words, where there are any."""

    item: Item
    reason: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Back among the waiting; `last`: behind all others."""

    items: tuple[Item, ...]
    last: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """Asked next as a pack of their own; `repair`: for the fields that were left empty."""

    items: tuple[Item, ...]
    repair: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """Too long even alone: cut into parts."""

    item: Item


@dataclass(frozen=True, slots=True)
class Escalate:
    """Asked next of a more powerful model."""

    item: Item


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more can be asked in this run, or of this model; the items stay unasked."""

    items: tuple[Item, ...]
    error: AskError


Step = Keep | Fail | Wait | Together | Split | Escalate | Stop


@dataclass(frozen=True, slots=True)
class Sent:
    """How a pack was asked. `repair`: for the fields that an answer left empty; `room_left`: a
    longer answer than the one asked for would fit the context; `higher`: there is a more powerful
    model than the one asked; `model`: its name."""

    repair: bool = False
    room_left: bool = True
    higher: bool = False
    model: str = ""


def after_reply(items: Mapping[str, Item], verdict: Verdict, sent: Sent) -> list[Step]:
    """What to do after a reply. `items` by their local ids."""
    steps: list[Step] = [Keep(items[key], answer) for key, answer in verdict.answers.items()]
    for key, answer in verdict.incomplete.items():
        items[key].draft, items[key].drafted_by = answer, sent.model
    empty = [items[key] for key in verdict.incomplete]
    if sent.repair:
        steps += [_give_up(item, sent.higher, "required_field_empty") for item in empty]
    elif empty:
        steps.append(Together(tuple(empty), repair=True))
    rest = [items[key] for key in items if key in verdict.wrong]
    for item in rest:
        item.asked += 1
        item.alone += len(items) == 1
    if sent.repair:
        return steps + [_give_up(item, sent.higher, "no_usable_answer") for item in rest]
    return steps + _ask_again(rest, len(items), verdict, sent)


def _give_up(item: Item, higher: bool, reason: str, message: str | None = None) -> Step:
    """The model that was asked cannot answer `item`."""
    if higher:
        item.alone = 0
        return Escalate(item)
    if item.draft is not None:
        return Keep(item, item.draft, review=True, by=item.drafted_by or None)
    return Fail(item, reason, message)


def _ask_again(rest: list[Item], asked: int, verdict: Verdict, sent: Sent) -> list[Step]:
    if asked == 1:
        reasons = ", ".join(sorted(set(verdict.wrong.values())))
        return [_alone_again(item, verdict.whole, reasons, sent) for item in rest]
    if not verdict.whole:
        return list(_halves(rest))
    again = tuple(item for item in rest if item.asked == 1)
    singly: list[Step] = [Together((item,)) for item in rest if item.asked > 1]
    return [*([Wait(again)] if again else []), *singly]


def _alone_again(item: Item, whole: bool, reasons: str, sent: Sent) -> Step:
    if not whole:
        if sent.room_left and item.alone < MAX_CUT_ALONE:
            return Together((item,))
        return _give_up(item, sent.higher, "answer_cut_off")
    if item.alone < MAX_ALONE and not sent.higher:
        return Together((item,))
    return _give_up(item, sent.higher, "no_usable_answer", reasons)


def _halves(items: Sequence[Item], repair: bool = False) -> list[Together]:
    middle = (len(items) + 1) // 2
    return [Together(tuple(half), repair) for half in (items[:middle], items[middle:]) if half]


def after_error(items: Sequence[Item], error: AskError, sent: Sent) -> list[Step]:
    """What to do after an error that asking could not get over.

    A model's own refusal is tried at the next tier: small ones refuse what bigger ones do not. A
    provider's (a 400) is not: its filter stands before all of its models, and content that it
    objects to is not sent to it twice. What stops a repair says nothing about the record.
    """
    if isinstance(error, Misconfigured | QuotaExhausted | CapReached | Stopped):
        return [Stop(tuple(items), error)]
    if isinstance(error, Unavailable):
        return _later(items, error, sent.repair)
    if len(items) > 1:
        return list(_halves(items, sent.repair))
    (item,) = items
    if isinstance(error, ContextOverflow) and item.draft is None:
        return [Split(item)]
    by_model = isinstance(error, Refused) and error.status == ANSWERED
    return [_give_up(item, sent.higher and (by_model or sent.repair), "refused", error.message)]


def _later(items: Sequence[Item], error: Unavailable, repair: bool) -> list[Step]:
    for item in items:
        item.rounds += 1
    steps: list[Step] = []
    patient = tuple(item for item in items if item.rounds < MAX_ROUNDS)
    if patient:
        steps.append(Together(patient, repair=True) if repair else Wait(patient, last=True))
    spent = [item for item in items if item.rounds >= MAX_ROUNDS]
    return steps + [_give_up(item, False, "provider_unavailable", error.message) for item in spent]
