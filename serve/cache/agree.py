"""Whether two questions that look alike ask the same, as far as code can tell: pure.

Invariant: in doubt they do not. Two questions that agree have the same numbers in the same order,
the same names, quotations and text to work on, and the same negations; they ask for the same kind
of thing (who, when, how many, yes or no, ...), stand on the same side of opposites (increase or
decrease) and go in the same direction (from A to B); and neither says a word of its own where the
other says another.

It is the last word on what the near and the semantic cache found: those measure how alike two
texts are, and "from Paris to Lyon" is very much like "from Lyon to Paris".
"""

from __future__ import annotations

from dataclasses import dataclass

from serve.cache.agreement.direction import same_direction
from serve.cache.agreement.negation import negated
from serve.cache.agreement.tables import MODAL, NEGATES, NUMBER, PERSON, may_miss
from serve.cache.agreement.words import Word, read_words

_YES_OR_NO = "?yes"
_MUST = "&must"
_SHOULD = "&should"
_CAN = "&can"
_OWNS = "+"
_NO_WORDS = (NUMBER, NEGATES, PERSON, MODAL)


@dataclass(frozen=True, slots=True)
class Reading:
    """What two questions must agree in. `words`: the meanings of all words that have one;
    `strict`: those that the other question must have too; `said`: all words in their order;
    `data`: the text to work on; `negated`: what each negation is before; `persons`, `modals`: I or
    you, can or should."""

    said: tuple[Word, ...]
    data: str
    words: frozenset[str]
    strict: frozenset[str]
    numbers: tuple[str, ...]
    negated: tuple[str, ...]
    persons: frozenset[str]
    modals: frozenset[str]


def reading(text: str) -> Reading:
    """What `text` says that matters."""
    words, data = read_words(text)
    said = [word for word in words if word.meaning]
    return Reading(
        said=tuple(words),
        data=data,
        words=frozenset([w.meaning for w in said if w.meaning[0] not in _NO_WORDS]),
        strict=frozenset([w.meaning for w in said if w.strict and w.meaning[0] != NUMBER]),
        numbers=tuple([w.meaning for w in said if w.meaning[0] == NUMBER]),
        negated=negated(said),
        persons=frozenset([w.meaning for w in said if w.meaning[0] == PERSON]),
        modals=frozenset([w.meaning for w in said if w.meaning[0] == MODAL]),
    )


def agrees(a: str, b: str) -> bool:
    """Whether an answer to `a` may be given to `b`, were they alike enough."""
    return a == b or agree(reading(a), reading(b))


def agree(one: Reading, other: Reading) -> bool:
    """The same of what was read."""
    return (
        one.numbers == other.numbers
        and one.negated == other.negated
        and one.data == other.data
        and one.strict <= other.words
        and other.strict <= one.words
        and _same_mood(one, other)
        and _same_words(one.words, other.words)
        and bool(one.words & other.words or one.numbers)
        and same_direction(one.said, other.said)
    )


def _same_words(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether neither says a word where the other says another, nor one that makes it narrower."""
    ours, theirs = one - other, other - one
    return not (ours and theirs) and all(map(may_miss, ours or theirs))


def _same_mood(one: Reading, other: Reading) -> bool:
    """Whether both are about the same person, and about what can, should or must be. What is
    answered by yes or no depends on it (can I use my wife's card, can my wife use my card);
    elsewhere much of it is left unsaid."""
    if _YES_OR_NO in one.strict:
        same_person = one.persons == other.persons or not (one.persons and other.persons)
        return same_person and one.modals == other.modals
    return not (
        _apart(_persons(one.persons), _persons(other.persons))
        or _apart(_possible_or_right(one.modals), _possible_or_right(other.modals))
    )


def _persons(persons: frozenset[str]) -> frozenset[str]:
    """Mine is me, yours is you."""
    return frozenset(each.removesuffix(_OWNS) for each in persons)


def _possible_or_right(modals: frozenset[str]) -> frozenset[str]:
    return frozenset(_SHOULD if each == _MUST else each for each in modals & {_CAN, _SHOULD, _MUST})


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and bool(other) and one.isdisjoint(other)
