"""A day of records by seed: which topics, in what kinds and languages, at what times.

Invariant: the same arguments give the same day, and the shares of outcomes and causes hold exactly
(largest remainder), however few records there are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count as counter
from itertools import islice

from job.records import Kind
from scripts.days.causes import Lang, Topic, Wording, load_causes, load_praise
from scripts.days.compose import Entry, conversation, feedback, filler, normal, operation

DAY = datetime(2026, 3, 10, tzinfo=UTC)
_OUTCOMES = {"problem": 45.0, "normal": 45.0, "positive": 10.0}
"""Percent of a day's records."""
_NORMAL_KINDS: tuple[Kind, ...] = ("operation", "conversation", "operation", "feedback")
_LANGS: tuple[Lang, ...] = ("zh", "en", "zh", "en", "zh")
"""Three records of five are Chinese."""
_BUSY_HOURS = (0, 2, 6, 7, *range(8, 24), *range(9, 23), 10, 11, 15, 20, 20, 21, 21)
"""Hours to draw from: few records at night, most around noon and in the evening."""
_AT_ITS_HOURS = 0.7
"""Share of a cause's records that fall into its own hours."""
_LONG_TOKENS = (680, 1330)
"""What a long record aims at, at least; it ends below 1,500."""
_TRIES = 500
_IDENTIFIER = re.compile(r"[!-~]*[0-9@/][!-~]*")
_WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Planned:
    """One record to be made. `topic` None: a normal record."""

    topic: Topic | None
    kind: Kind
    lang: Lang
    wording: Wording


def words_of(text: str) -> str:
    """What is left of a text without numbers, marks and identifiers: records that differ in this
    differ in words."""
    return " ".join(_WORD.findall(_IDENTIFIER.sub(" ", text)))


def apportion(shares: Sequence[float], total: int, least: int) -> list[int]:
    """`total` split in proportion to `shares` by largest remainder, each part at least `least`.

    Raises ValueError where `total` is too small for that.
    """
    if total < least * len(shares):
        raise ValueError(f"{total} records are too few for {len(shares)} parts of at least {least}")
    exact = [total * share / sum(shares) for share in shares]
    parts = [max(least, int(value)) for value in exact]
    order = sorted(range(len(shares)), key=lambda i: (parts[i] - exact[i], i))
    for i in islice(_cycle(order), max(0, total - sum(parts))):
        parts[i] += 1
    while sum(parts) > total:
        parts[max(range(len(parts)), key=lambda i: parts[i])] -= 1
    return parts


def _cycle(order: Sequence[int]) -> Iterator[int]:
    return (order[i % len(order)] for i in counter())


def _plan_topic(topic: Topic, amount: int) -> Iterator[Planned]:
    """Kinds and languages in turn, and within each the wordings in turn."""
    kinds = list(topic.wordings)
    used: dict[tuple[Kind, Lang], Iterator[int]] = {}
    for i in range(amount):
        kind, lang = kinds[i % len(kinds)], _LANGS[i // len(kinds) % len(_LANGS)]
        wordings = topic.wordings[kind][lang]
        turn = next(used.setdefault((kind, lang), counter()))
        yield Planned(topic, kind, lang, wordings[turn % len(wordings)])


def _plan_normal(rng: random.Random, amount: int) -> Iterator[Planned]:
    for i in range(amount):
        kind = _NORMAL_KINDS[i % len(_NORMAL_KINDS)]
        lang = _LANGS[i // len(_NORMAL_KINDS) % len(_LANGS)]
        yield Planned(None, kind, lang, rng.choice(normal()[kind][lang]))


def plan_day(rng: random.Random, records: int, least: int) -> list[Planned]:
    """The records of a day; every cause and praise appears at least `least` times."""
    problems, normals, positives = apportion(list(_OUTCOMES.values()), records, 0)
    plan: list[Planned] = []
    for topics, total in ((load_causes(), problems), (load_praise(), positives)):
        amounts = apportion([topic.share for topic in topics], total, least)
        for topic, amount in zip(topics, amounts, strict=True):
            plan += _plan_topic(topic, amount)
    return plan + list(_plan_normal(rng, normals))


def _moment(rng: random.Random, hours: Sequence[int]) -> datetime:
    own = hours and rng.random() < _AT_ITS_HOURS
    hour = rng.choice(hours if own else _BUSY_HOURS)
    return DAY + timedelta(hours=hour, milliseconds=rng.randrange(3_600_000))


def _rating(rng: random.Random, outcome: str) -> int:
    return rng.choice({"problem": (1, 1, 2, 2, 3), "positive": (5, 5, 5, 4)}.get(outcome, (3, 4)))


def make_entry(rng: random.Random, planned: Planned, long: int = 0) -> Entry:
    """One record; `long`: tokens it has at least (see `compose`)."""
    topic, kind, lang, wording = planned.topic, planned.kind, planned.lang, planned.wording
    turns: tuple[tuple[str, str], ...] = ()
    if kind == "conversation":
        text, turns, user = conversation(rng, wording, lang, long)
    elif kind == "operation":
        text, user = operation(rng, wording, lang, long)
    else:
        text, user = feedback(rng, wording, lang)
    outcome = topic.outcome if topic else "normal"
    return Entry(
        kind=kind,
        lang=lang,
        time=_moment(rng, topic.hours if topic else ()),
        outcome=outcome,
        cause=topic.name if topic else None,
        text=text,
        user=user,
        turns=turns,
        service=wording.service,
        level=wording.level if kind == "operation" else "",
        rating=_rating(rng, outcome) if kind == "feedback" else 0,
    )


def _can_be_long(planned: Planned) -> bool:
    wording = planned.wording
    return planned.kind == "conversation" or bool(wording.java or wording.python)


def make_day(
    rng: random.Random, plan: Sequence[Planned], long_share: float, taken: set[str] | None
) -> list[Entry]:
    """The records of `plan` in order of time; `long_share` of them have 600 to 1,500 tokens.

    With `taken` no two records, and none and a member of `taken`, consist of the same words;
    raises RuntimeError where the wordings do not give that many.
    """
    candidates = [i for i, planned in enumerate(plan) if _can_be_long(planned)]
    long = set(rng.sample(candidates, round(long_share * len(plan))))
    entries = []
    for i, planned in enumerate(plan):
        for _ in range(_TRIES):
            entry = make_entry(rng, planned, rng.randint(*_LONG_TOKENS) if i in long else 0)
            if taken is None or words_of(entry.text) not in taken:
                break
        else:
            raise RuntimeError(f"no {_TRIES} tries gave new words for {planned.wording.texts}")
        if taken is not None:
            taken.add(words_of(entry.text))
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry.time)


def make_poison(rng: random.Random, amount: int, taken: set[str]) -> list[Entry]:
    """Conversations that hold the phrase no provider answers."""
    wording = Wording(tuple(filler()["poison"]["turns"]))
    plan = [Planned(None, "conversation", "en", wording)] * amount
    return [replace(entry, outcome="refused") for entry in make_day(rng, plan, 0.0, taken)]
