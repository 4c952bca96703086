"""Templates and a seed -> the text of one record. Pure but for the random numbers it is given.

Invariant: within a record a slot has one value (a person has one name), except for numbers; what
is put around a wording says nothing that went wrong or was praised.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from job.records import KINDS, Kind
from scripts.days.causes import Lang, Wording, read_words, wordings_of
from scripts.days.stacks import java_trace, python_trace
from scripts.days.truth import Outcome
from serve.ask.tokens import count

_SLOT = re.compile(r"\{(\w+)\}")
_MOST_CHATTER = 3
"""Ordinary questions and answers beside the wording in a conversation that is not long."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a day before it is written.

    `text` is what a reader of the record sees: the turns as `role: content` lines, the log entry
    without its time and level, the feedback.
    """

    kind: Kind
    lang: Lang
    time: datetime
    outcome: Outcome
    cause: str | None
    text: str
    user: str
    turns: tuple[tuple[str, str], ...] = ()
    service: str = ""
    level: str = ""
    rating: int = 0


@lru_cache(maxsize=1)
def filler() -> dict[str, Any]:
    """Turns and sentences that surround the wordings."""
    return dict(read_words("filler.yaml"))


@lru_cache(maxsize=1)
def normal() -> dict[Kind, dict[Lang, tuple[Wording, ...]]]:
    """Wordings of records in which nothing went wrong."""
    raw = read_words("normal.yaml")
    return {kind: wordings_of(raw, kind) for kind in KINDS}


@lru_cache(maxsize=1)
def _slots() -> dict[str, Any]:
    return dict(read_words("slots.yaml"))


class SlotFiller:
    """Fills the slots of templates: words once per record, numbers anew each time."""

    def __init__(self, rng: random.Random, lang: Lang) -> None:
        self._rng = rng
        self._lang = lang
        names = ("product", "city", "name", "weekday")
        self._words = {name: rng.choice(_slots()[name][lang]) for name in names}
        self.user = f"u-{rng.randint(1000, 1899)}"

    def _value(self, slot: str) -> str:
        rng = self._rng
        match slot:
            case "n":
                return str(rng.randint(3, 60))
            case "ms":
                return str(rng.randint(1200, 31000))
            case "order":
                return f"SO{rng.randint(10**7, 10**8 - 1)}"
            case "amount":
                price = f"{rng.randint(19, 899)}.{rng.randint(0, 9)}0"
                return f"{price} 元" if self._lang == "zh" else f"${price}"
            case "email":
                return f"user{rng.randint(100, 999)}@example.com"
            case "phone":
                if self._lang == "zh":
                    return f"1380013{rng.randint(0, 9999):04d}"
                return f"+1 415 555 01{rng.randint(0, 99):02d}"
            case "user":
                return self.user
        return str(self._words[slot])

    def fill(self, template: str) -> str:
        """`template` with every slot filled. Raises KeyError for a slot nobody knows."""
        if self._words["product"][0] in "aeiou":
            template = template.replace("a {product}", "an {product}")
        text = _SLOT.sub(lambda match: self._value(match[1]), template)
        if self._lang == "en" and template.startswith("{"):
            text = text[0].upper() + text[1:]
        return text


def render(turns: tuple[tuple[str, str], ...]) -> str:
    """A conversation as text, a line a turn."""
    return "\n".join(f"{role}: {content}" for role, content in turns)


def conversation(
    rng: random.Random, wording: Wording, lang: Lang, long: int = 0
) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Text, turns and user of a conversation about `wording`.

    `long`: tokens the text shall have at least, reached with ordinary questions and answers.
    """
    slots = SlotFiller(rng, lang)
    pairs = [tuple(slots.fill(text) for text in wording.texts)]
    ordinary = [w.texts for w in normal()["conversation"][lang] if w is not wording]
    chatter = rng.randint(0, _MOST_CHATTER)
    rng.shuffle(ordinary)
    while True:
        asked = [ordinary[i % len(ordinary)] for i in range(chatter)]
        beside = [tuple(map(slots.fill, pair)) for pair in asked]
        before, after = beside[: chatter // 2], beside[chatter // 2 :]
        opener = [tuple(map(slots.fill, rng.choice(filler()["openers"][lang])))]
        closer = [tuple(map(slots.fill, rng.choice(filler()["closers"][lang])))]
        around = opener if rng.random() < 0.8 else []
        ending = closer if rng.random() < 0.6 else []
        flat = [text for pair in [*around, *before, *pairs, *after, *ending] for text in pair]
        turns = tuple(("user" if i % 2 == 0 else "assistant", text) for i, text in enumerate(flat))
        text = render(turns)
        if count(text) >= long:
            return text, turns, slots.user
        chatter += 1


def operation(rng: random.Random, wording: Wording, lang: Lang, long: int = 0) -> tuple[str, str]:
    """Text (message and stack trace) and user of a log entry; `long` as for conversations."""
    slots = SlotFiller(rng, lang)
    message = f"{slots.fill(wording.texts[0])} {_context(rng, wording.service)}"
    errors = [slots.fill(error) for error in wording.java or wording.python]
    if not errors:
        return message, slots.user
    trace = java_trace if wording.java else python_trace
    frames = rng.randint(2, 5)
    while True:
        text = f"{message}\n{trace(rng, wording.service, errors, frames)}"
        if count(text) >= long:
            return text, slots.user
        frames += 2


def _context(rng: random.Random, service: str) -> str:
    """Where a log entry came from, as tracing libraries append it."""
    pod = f"{service}-{rng.getrandbits(20):05x}"
    return f"trace={rng.getrandbits(64):016x} pod={pod} thread=exec-{rng.randint(1, 64)}"


def feedback(rng: random.Random, wording: Wording, lang: Lang) -> tuple[str, str]:
    """Text and user of a feedback."""
    slots = SlotFiller(rng, lang)
    leads, tails = filler()["leads"][lang], filler()["tails"][lang]
    before = [slots.fill(text) for text in rng.sample(leads, rng.randint(0, 2))]
    after = [slots.fill(text) for text in rng.sample(tails, rng.randint(0, 2))]
    parts = [*before, slots.fill(wording.texts[0]), *after]
    return ("" if lang == "zh" else " ").join(parts), slots.user
