"""Whether two questions that look alike ask the same, as far as code can tell: pure.

Invariant: in doubt they do not. Two questions that agree have the same numbers in the same order,
the same names, quotations and text to work on, the same negations, ask for the same kind of thing
(who, when, how many, ...), stand on the same side of opposites (increase or decrease), go in the
same direction (from A to B), and neither says a word of its own where the other says another.

It is the last word on what the near and the semantic cache found: those measure how alike two
texts are, and "from Paris to Lyon" is very much like "from Lyon to Paris".
"""

from __future__ import annotations

from dataclasses import dataclass

from serve.cache.agreement import direction
from serve.cache.agreement.tables import may_miss
from serve.cache.agreement.words import Word, read_words

@dataclass(frozen=True, slots=True)
class Reading:
    """What two questions must agree in. `words`: the meanings of all words that have one;
    `strict`: those that the other question must have too; `said`: all words in their order;
    `data`: the text to work on."""

    said: tuple[Word, ...]
    data: str
    words: frozenset[str]
    strict: frozenset[str]
    numbers: tuple[str, ...]
    negations: int
    flows: frozenset[tuple[str, str]]
    order: dict[str, int]


def reading(text: str) -> Reading:
    """What `text` says that matters."""
    words, data = read_words(text)
    return Reading(
        said=tuple(words),
        data=data,
        words=frozenset(w.meaning for w in words if w.meaning and w.meaning[0] not in "#!"),
        strict=frozenset(w.meaning for w in words if w.strict and w.meaning[0] != "#"),
        numbers=tuple(w.meaning for w in words if w.meaning[:1] == "#"),
        negations=sum(w.meaning == "!" for w in words),
        flows=direction.flows(words),
        order=direction.order(words),
    )


def agrees(a: str, b: str) -> bool:
    """Whether an answer to `a` may be given to `b`, were they alike enough."""
    return a == b or agree(reading(a), reading(b))


def agree(one: Reading, other: Reading) -> bool:
    """The same of what was read."""
    if one.numbers != other.numbers or one.negations != other.negations or one.data != other.data:
        return False
    if not one.strict <= other.words or not other.strict <= one.words:
        return False
    ours, theirs = one.words - other.words, other.words - one.words
    if (ours and theirs) or not all(map(may_miss, ours or theirs)):
        return False
    return not (
        direction.opposed(one.flows, other.flows)
        or direction.swapped(one.said, other.said)
        or direction.reordered(one.order, other.order)
    )
