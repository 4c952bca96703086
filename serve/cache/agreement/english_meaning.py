"""The meaning of an English question: its form, with a few other words and turns made one.

Invariant: each rule rewrites a whole question of a fixed shape into another one that asks the same,
or a word that means the same in every place; nothing else is touched.
"""

from __future__ import annotations

from serve.cache.agreement.english import is_about_words

_SYNONYMS = {
    "purchase": "buy",
    "purchasing": "buying",
    "largest": "biggest",
    "info": "information",
    "television": "TV",
    "maths": "math",
    "mathematics": "math",
    "refrigerator": "fridge",
    "USA": "US",
    "advertisements": "ads",
    "photograph": "photo",
    "photographs": "photos",
}
"""Words that mean the same wherever they stand."""
_HOW = (
    ("how", "do", "I"),
    ("how", "can", "I"),
    ("how", "to"),
    ("what", "is", "the", "way", "to"),
    ("what", "is", "a", "way", "to"),
    ("what", "is", "the", "best", "way", "to"),
    ("what", "are", "the", "steps", "to"),
)
"""Ways to ask how something is done, in front of the verb."""
_STATES = frozenset(
    (
        *(
            "look",
            "feel",
            "seem",
            "sound",
            "smell",
            "know",
            "differ",
            "compare",
            "rank",
            "be",
            "die",
        ),
        *("have", "owe", "need", "want", "like", "love", "own", "belong", "weigh", "exist", "not"),
        *("ever", "possibly", "still"),
    )
)
"""Verbs that say how I am, not what I do ("how do I look" is not "how to look"), and what makes it
no question (how can I not)."""
_PLACES = frozenset(("in", "on"))
_FRONT = 4
"""Words in front of a question that say where: "In Visual Studio Code, ..."."""
_CLAUSE = frozenset(("I", "you", "we", "they", "he", "she", "it", "that", "which", "who", "what"))
"""Words of a clause, to which what stands behind it may belong: a file I saved in Excel."""
_ATTRIBUTES = frozenset(("capital", "population", "currency", "birthday", "area"))
"""Nouns for which X's noun is the noun of X."""
_KINDS = (["country"], ["countries"], ["city"], ["cities"], ["planet"], ["continent"])
_AUTHORS = {
    "author": "wrote",
    "inventor": "invented",
    "founder": "founded",
    "painter": "painted",
    "composer": "composed",
}
_SIGNS = "+-"
# fmt: off
_NUMBERS = {
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty",
    "ninety", "hundred", "thousand", "million", "half",
}
# fmt: on
"""A difference of numbers may have a sign."""
_MEASURES = {"height": "tall", "age": "old", "depth": "deep"}
_WHAT_IS = ["what", "is", "the"]
_WHAT_TIME = ["what", "time", "is", "it", "in"]


def meaning(words: list[str], letter: str) -> list[str]:
    """The words of the meaning of a form. `letter`: what follows them to the letter."""
    said = words if is_about_words(words) else [_SYNONYMS.get(word, word) for word in words]
    said = _what(said)
    if not letter:
        said = _fronted(said)
        for rule in (_attribute, _author, _measure, _mean, _difference, _contents, _time):
            said = rule(said)
    return _how(said, bool(letter))


def _how(said: list[str], more: bool) -> list[str]:
    for frame in _HOW:
        size = len(frame)
        if tuple(said[:size]) == frame and len(said) + more >= size + 2:
            return said if said[size] in _STATES else ["how", "to", *said[size:]]
    return said


def _what(said: list[str]) -> list[str]:
    """Which city is what city; of other words, which asks for one of several."""
    return ["what", *said[1:]] if said[0] == "which" and said[1:2] in _KINDS else said


def _fronted(said: list[str]) -> list[str]:
    """In X, how is ...: how is ... in X."""
    where = said[0].lower()
    if where not in _PLACES:
        return said
    for at, word in enumerate(said[1:_FRONT], start=1):
        if word.endswith(","):
            rest = said[at + 1 :]
            if tuple(rest[:3]) in _HOW[:2] and len(rest) > 4 and _CLAUSE.isdisjoint(rest[3:]):
                return [*rest, where, *said[1:at], word[:-1]]
            break
    return said


def _attribute(said: list[str]) -> list[str]:
    """What is X's capital: what is the capital of X."""
    if said[:2] == ["what", "is"] and len(said) > 3 and said[-1] in _ATTRIBUTES:
        owner = said[2:-1]
        if owner[-1].endswith("'s") and "of" not in owner:
            return [*_WHAT_IS, said[-1], "of", *owner[:-1], owner[-1][:-2]]
    return said


def _author(said: list[str]) -> list[str]:
    """Who is the author of X: who wrote X."""
    if said[:3] == ["who", "is", "the"] and said[4:5] == ["of"] and len(said) > 5:
        verb = _AUTHORS.get(said[3])
        return ["who", verb, *said[5:]] if verb else said
    return said


def _measure(said: list[str]) -> list[str]:
    """What is the height of X: how tall is X."""
    if said[:3] == _WHAT_IS and said[4:5] == ["of"] and len(said) > 5:
        measure = _MEASURES.get(said[3])
        return ["how", measure, "is", *said[5:]] if measure else said
    return said


def _mean(said: list[str]) -> list[str]:
    """What is the meaning of X: what does X mean."""
    if said[:5] == [*_WHAT_IS, "meaning", "of"] and len(said) == 6:
        return ["what", "does", said[5], "mean"]
    return said


def _difference(said: list[str]) -> list[str]:
    """What is the difference between A and B: between B and A."""
    if said[:5] == [*_WHAT_IS, "difference", "between"] and len(said) == 8 and said[6] == "and":
        if _may_be_a_number(said[5]) or _may_be_a_number(said[7]):
            return said
        return [*said[:5], *sorted((said[5], said[7]))]
    return said


def _may_be_a_number(word: str) -> bool:
    """Of which the difference has a direction: 5, x, A5, five."""
    return (
        len(word) == 1
        or word[0] in _SIGNS
        or any(letter.isdigit() for letter in word)
        or word.lower() in _NUMBERS
    )


def _contents(said: list[str]) -> list[str]:
    """How much N does X contain, how many N does X have: how many N is in X."""
    if said[0] == "how" and said[1:2] in (["much"], ["many"]) and len(said) > 5:
        if said[3] in ("do", "does") and said[-1] in ("contain", "have"):
            return [*said[:3], "in", *said[4:-1]]
        if said[3] in ("is", "are"):
            at = 5 if said[4] == "there" else 4
            if said[at] == "in":
                return [*said[:3], *said[at:]]
    return said


def _time(said: list[str]) -> list[str]:
    """What time is it in X: what is the time in X."""
    return [*_WHAT_IS, "time", *said[4:]] if said[:5] == _WHAT_TIME else said
