"""The pack contract: what came back, or went wrong -> what is done with each item. Pure.

Invariant: the steps for a pack name every one of its items exactly once. An answer that came back
good is kept whatever happened to its neighbours; no item is asked for ever (three rounds with a
failing provider, three times alone with an unusable answer, five with one that was cut); the bytes
of a request whose answer was cut or broken are never sent again (the items go in halves, and one
alone with more room).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from job.pack import Item
from job.records import Answer
from job.validate import Verdict, Wrong
from serve.ask.errors import (
    AskError,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    Stopped,
    Unavailable,
)

MAX_ROUNDS = 3
"""Rounds (of four attempts each) that a failing provider gets for a record."""
MAX_ALONE = 3
"""Unusable answers to a record asked by itself before it fails."""
MAX_CUT_ALONE = 5
"""Cut or broken ones, each asked for with twice the room of the one before."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The answer is used; `review`: a person should look, a required field stayed empty."""

    item: Item
    answer: Answer
    review: bool = False


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
class Stop:
    """Nothing more can be asked in this run; the items stay unasked."""

    items: tuple[Item, ...]
    error: AskError


Step = Keep | Fail | Wait | Together | Split | Stop


def after_reply(
    items: Mapping[str, Item], verdict: Verdict, repair: bool, room_left: bool
) -> list[Step]:
    """What to do after a reply. `items` by their local ids; `repair`: the pack was one;
    `room_left`: a longer answer than the one asked for would fit the context."""
    steps: list[Step] = [Keep(items[key], answer) for key, answer in verdict.answers.items()]
    empty = [items[key] for key in verdict.incomplete]
    if repair:
        steps += [Keep(items[key], answer, True) for key, answer in verdict.incomplete.items()]
    elif empty:
        for key, answer in verdict.incomplete.items():
            items[key].draft = answer
        steps.append(Together(tuple(empty), repair=True))
    rest = [items[key] for key in items if key in verdict.wrong]
    for item in rest:
        item.asked += 1
        item.alone += len(items) == 1
    if repair:
        return steps + [Keep(item, item.draft, True) for item in rest if item.draft]
    return steps + _ask_again(rest, len(items), verdict, room_left)


def _ask_again(rest: list[Item], sent: int, verdict: Verdict, room_left: bool) -> list[Step]:
    reasons = set(verdict.wrong.values())
    if sent == 1:
        return [_alone_again(item, verdict, room_left, reasons) for item in rest]
    if not verdict.whole:
        return list(_halves(rest))
    again = tuple(item for item in rest if item.asked == 1)
    singly: list[Step] = [Together((item,)) for item in rest if item.asked > 1]
    return [*([Wait(again)] if again else []), *singly]


def _alone_again(item: Item, verdict: Verdict, room_left: bool, reasons: set[Wrong]) -> Step:
    if not verdict.whole:
        if room_left and item.alone < MAX_CUT_ALONE:
            return Together((item,))
        return Fail(item, "answer_cut_off")
    if item.alone < MAX_ALONE:
        return Together((item,))
    return Fail(item, "no_usable_answer", ", ".join(sorted(reasons)))


def _halves(items: Sequence[Item], repair: bool = False) -> list[Together]:
    middle = (len(items) + 1) // 2
    return [Together(tuple(half), repair) for half in (items[:middle], items[middle:]) if half]


def after_error(items: Sequence[Item], error: AskError, repair: bool) -> list[Step]:
    """What to do after an error that asking could not get over."""
    if isinstance(error, Misconfigured | QuotaExhausted | Stopped):
        return [Stop(tuple(items), error)]
    if isinstance(error, Unavailable):
        return _later(items, error, repair)
    if len(items) > 1:
        return list(_halves(items, repair))
    (item,) = items
    if item.draft is not None:
        return [Keep(item, item.draft, review=True)]
    if isinstance(error, ContextOverflow):
        return [Split(item)]
    return [Fail(item, "refused", error.message)]


def _later(items: Sequence[Item], error: Unavailable, repair: bool) -> list[Step]:
    for item in items:
        item.rounds += 1
    steps: list[Step] = []
    patient = tuple(item for item in items if item.rounds < MAX_ROUNDS)
    if patient:
        steps.append(Together(patient, repair=True) if repair else Wait(patient, last=True))
    for item in items:
        if item.rounds >= MAX_ROUNDS:
            steps.append(
                Keep(item, item.draft, review=True)
                if item.draft is not None
                else Fail(item, "provider_unavailable", error.message)
            )
    return steps
