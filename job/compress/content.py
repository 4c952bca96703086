"""What each part of a rule is about: all its words but those that decide or only join. Pure.

Invariant: a part that leaves no word of its own behind is lost; so is a negation that stands
before something else than it did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from job.compress.deciding import deciding
from job.compress.facts import GRADE, MEASURE, plain
from job.words import listed

_JOINING = frozenset(
    listed(
        "a, an, the, this, that, these, those, such, it, its, they, them, their, there, we, us",
        "our, you, your, he, she, who, whom, which, what, when, where, why, how, if, then, than",
        "so, as, at, by, for, from, in, into, of, on, onto, to, toward, with, within, about, and",
        "but, because, due, also, too, just, very, really, quite, rather, well, please, kindly",
        "note, sure, remember, make, makes, made, keep, take, takes, taken, get, gets, be, is, am",
        "are, was, were, been, being, do, does, did, done, have, has, had, having, will, would",
        "shall, should, must, need, needs, needed, ought, consider, considered, regard, regarded",
        "treat, treated, count, counts, counted, mark, marked, rate, rated, see, seen",
        "classify, classified, deem, deemed, case, cases, kind, kinds, sort, way, situation",
        "situations, thing, things, fact, important, importantly, actually, basically",
        "generally, simply, namely, e.g, i.e, etc, respectively, however, therefore, thus, hence",
        "out, up, off, over, under, more, less, s, t, d, ll, re, ve, report, reported, reporting",
        "severity, outcome, record, records, entry, entries, contain, contains, containing, word",
        "words, use, used, happen, happens, one, here, certain, particular, particularly",
        "especially, like, via, per, ours",
    )
)
"""English words that may go: they join, or say no more than that this is a rule."""
_JOINING_CHINESE = re.compile(
    "|".join(
        sorted(
            listed(
                "请注意, 注意, 请务必, 务必, 一定要, 需要, 应该, 应当, 必须, 如果, 的话, 情况下",
                "情况, 时候, 以及, 并且, 而且, 因为, 所以, 这些, 那些, 这个, 那个, 一个, 一些",
                "进行, 对于, 关于, 属于, 视为, 视作, 看作, 看成, 当作, 当成, 认为, 作为, 算作",
                "标记, 记录, 包含, 严重程度, 严重性",
                "标为, 归为, 判为, 判定, 定为, 评为, 我们, 你们, 他们, 它们, 尽可能, 十分, 非常",
                "其中, 那么, 由于, 但是, 然而, 此外, 另外, 同时, 上报, 报告, 记为, 记作, 计入",
                "凡是, 只要, 是否, 本来",
            ),
            key=len,
            reverse=True,
        )
    )
    + "|[的了是把被则就也请而且及与]"
)
_LIGHT_CHINESE = re.compile("[要算会能应该需得再将予有用因为]+")
"""What may stand between a negation and what it negates, and may come and go."""
_PARTS = re.compile(
    r"[,，;；:：.。!！?？()（）\[\]、\n\"“”「」]+|\b(?:and|or|but|nor)\b|或者|或是|或|以及|但是|但|而是|和"
)
_CLAUSES = re.compile(r"[,，;；:：.。!！?？()（）\[\]\n]+|\bbut\b|而是|但是|但")
_WORD = re.compile(r"[a-z][a-z0-9_]*(?:[-.:/@#][a-z0-9_]+)*|[一-鿿]+")
_STEM = 5
"""Letters of a long word that tell it from others."""


def lost_parts(rule: str, short: str) -> list[str]:
    """The parts of `rule` of whose own words none is in `short`."""
    left = words(plain(short))
    return [
        part
        for part, own in _own_words(rule).items()
        if not any(_holds(left, word) for word in own)
    ]


def _own_words(rule: str) -> dict[str, list[str]]:
    """The words of each part of `rule` that no other part has, where there are any."""
    texts = [part.strip() for part in _PARTS.split(plain(rule))]
    parts = [words(text) for text in texts]
    found = {}
    for place, part in enumerate(parts):
        others = [word for other in (*parts[:place], *parts[place + 1 :]) for word in other]
        own = [word for word in part if not _holds(others, word)]
        if own:
            found[texts[place]] = own
    return found


def new_words(rule: str, short: str) -> list[str]:
    """Words of `short` that `rule` has not. Of Chinese, characters."""
    whole = plain(rule)
    before = words(whole)
    found = [word for word in words(plain(short)) if word[0].isascii() and not _holds(before, word)]
    chinese = "".join(run for run in _WORD.findall(_undecided(plain(short))) if not run.isascii())
    return found + [c for c in _LIGHT_CHINESE.sub("", chinese) if c not in whole]


def moved_parts(rule: str, short: str) -> bool:
    """Whether what is left of the parts of `rule` comes in another order in `short`."""
    left = plain(short)
    places = [
        (left.find(word[:_STEM]), part)
        for part, own in enumerate(_own_words(rule).values())
        for word in own
    ]
    order = [part for place, part in sorted(places) if place >= 0]
    return order != sorted(order)


def moved_negations(rule: str, short: str) -> list[str]:
    """What `short` negates and `rule` does not: of the words behind a negation, most were not
    behind one."""
    negated = [word for scope in _negated(rule) for word in scope]
    moved = []
    for scope in _negated(short):
        other = [word for word in scope if not _holds(negated, word)]
        if negated and 2 * len(other) > len(scope):
            moved.append(other[0])
    return moved


def _negated(text: str) -> list[list[str]]:
    """The words behind each negation, up to the end of its clause or to the next negation."""
    found = []
    for clause in _CLAUSES.split(plain(text)):
        places = [match for name, match in deciding(clause) if name == "not"]
        for place, match in enumerate(places, 1):
            end = places[place].start() if place < len(places) else len(clause)
            scope = clause[match.end() : end]
            light = _LIGHT_CHINESE.match(scope)
            found.append(words(scope[light.end() :] if light else scope))
    return found


def words(text: str) -> list[str]:
    """The words of `text` (in lower case) that say what it is about; of Chinese, pairs of
    characters."""
    found: list[str] = []
    for word in _WORD.findall(_undecided(text)):
        if word[0].isascii():
            found += [word] if word not in _JOINING else []
        elif len(word) > 1:
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        elif not _LIGHT_CHINESE.match(word):
            found.append(word)
    return found


def _undecided(text: str) -> str:
    """`text` without the words that decide or only join, and without grades and units."""
    for _, match in reversed(deciding(text)):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    text = GRADE.sub(" ", MEASURE.sub(" ", text))
    return _JOINING_CHINESE.sub(" ", text)


def _holds(known: Iterable[str], word: str) -> bool:
    return any(_same(word, other) for other in known)


def _same(one: str, other: str) -> bool:
    """Whether two words have the stem in common: all of a short one, five letters of long ones."""
    if one == other:
        return True
    if not (one[0].isascii() and other[0].isascii()):
        return False
    needed = min(len(one), len(other), _STEM)
    return needed >= 3 and one[:needed] == other[:needed]
