"""Who does it to whom, and from where to where.

Invariant: where two questions put the same two things in the opposite order around a word of
direction (to, into, than, 到, 比, ...), or differ only by two parts that changed places, they do
not agree; "A and B" and "B and A" do.
"""

from __future__ import annotations

from collections.abc import Sequence

from serve.cache.agreement.tables import PERSON, read_table
from serve.cache.agreement.words import Word

_ROLES = read_table("direction.txt")
WINDOW = 3
"""Words that count on each side of a mark: a name or a noun with what belongs to it."""
LONGEST_PART = 8
"""Words of a part that changed places with another."""


def same_direction(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether nothing in the two goes the opposite way."""
    asks, asks_too = asked(one), asked(other)
    return not (
        object_of(one) != object_of(other)
        or (asks and asks_too and asks != asks_too)
        or opposed(flows(one), flows(other))
        or reordered(order(one), order(other))
        or swapped(one, other)
    )


def flows(words: Sequence[Word]) -> frozenset[tuple[str, str]]:
    """Pairs of meanings that stand left and right of a word of direction."""
    found: set[tuple[str, str]] = set()
    for at, word in enumerate(words):
        if _ROLES.get(word.text) == "mark":
            left = [each.meaning for each in words[:at] if each.meaning][-WINDOW:]
            right = [each.meaning for each in words[at + 1 :] if each.meaning][:WINDOW]
            found.update((one, other) for one in left for other in right if one != other)
    return frozenset(found)


def opposed(one: frozenset[tuple[str, str]], other: frozenset[tuple[str, str]]) -> bool:
    """Whether a pair goes one way in `one` and only the other way in `other`."""
    return any(
        (right, left) in other and (left, right) not in other and (right, left) not in one
        for left, right in one
    )


def swapped(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether the two differ by nothing but two parts that changed places around a third: as they
    are, or without the words that do not say who does what."""
    return _swapped(one, range(len(one)), other, range(len(other))) or _swapped(
        one, _core(one), other, _core(other)
    )


def _swapped(
    one: Sequence[Word], ours: Sequence[int], other: Sequence[Word], theirs: Sequence[int]
) -> bool:
    """The same of the words at the places `ours` and `theirs`."""
    if len(ours) != len(theirs):
        return False
    a = [one[at].meaning or one[at].text for at in ours]
    b = [other[at].meaning or other[at].text for at in theirs]
    start, end = 0, len(a)
    while start < end and a[start] == b[start]:
        start += 1
    while end > start and a[end - 1] == b[end - 1]:
        end -= 1
    a, b, size = a[start:end], b[start:end], end - start
    for first in range(1, min(LONGEST_PART, size - 1) + 1):
        if a[:first] != b[size - first :]:
            continue
        for last in range(1, min(LONGEST_PART, size - first) + 1):
            if a[size - last :] != b[:last] or a[first : size - last] != b[last : size - first]:
                continue
            between = one[ours[start + first - 1] + 1 : ours[end - last]]
            across = other[theirs[start + last - 1] + 1 : theirs[end - first]]
            apart = last < size - first or (_has_role(between) and _has_role(across))
            if apart and not (_joined(between) and _joined(across)):
                return True
    return False


def _core(words: Sequence[Word]) -> list[int]:
    """Where the words are that say who does what, not where or with what it is done; of two joined
    by and, the lesser first."""
    places: list[int] = []
    for at, word in enumerate(words):
        if not word.meaning or word.meaning[0] in "?&~" or _is_place(words, at):
            continue
        if places and _joined(words[places[-1] + 1 : at]) and word < words[places[-1]]:
            places.insert(-1, at)
        else:
            places.append(at)
    return places


def _is_place(words: Sequence[Word], at: int) -> bool:
    """Whether a word follows in, with, ..., with nothing but an article between."""
    before = at - 1
    if before > 0 and not words[before].meaning and words[before].text not in _ROLES:
        before -= 1
    return before >= 0 and _ROLES.get(words[before].text) == "place"


def _has_role(words: Sequence[Word]) -> bool:
    return any(word.text in _ROLES for word in words)


def _joined(words: Sequence[Word]) -> bool:
    return bool(words) and all(_ROLES.get(word.text) == "joint" for word in words)


def object_of(words: Sequence[Word]) -> str:
    """The person that a question ends with (起诉我吗, call her), "" where there is none."""
    for word in reversed(words):
        if word.meaning and word.meaning[0] not in "?&~":
            return word.meaning if word.meaning[0] == PERSON else ""
    return ""


def asked(words: Sequence[Word]) -> str:
    """Whether a question asks who does it ("who": who beat Spain, 谁赢了西班牙) or to whom it is
    done ("whom": who did Spain beat, 西班牙赢了谁); "" where it asks neither, or leaves it open."""
    roles = [_ROLES.get(word.text) for word in words]
    if "asks" not in roles:
        return ""
    at = roles.index("asks")
    if words[at].text.isascii():
        if "does" in roles[at:]:
            return "whom"
        return "" if "open" in roles else "who"
    if "open" in roles[max(0, at - 1) : at + 2]:
        return ""
    before = any(word.meaning and not word.strict for word in words[:at])
    after = any(word.meaning and not word.strict for word in words[at + 1 :])
    return "" if before == after else "whom" if before else "who"


def order(words: Sequence[Word]) -> dict[str, int]:
    """Where each name stands, leaving out those that only say where or with what, and those that
    are joined to another (A and B)."""
    places: dict[str, int] = {}
    for at, word in enumerate(words):
        if not word.strict or word.meaning[:1] in "+-?#":
            continue
        before = _ROLES.get(words[at - 1].text) if at else None
        after = _ROLES.get(words[at + 1].text) if at + 1 < len(words) else None
        if before not in ("place", "joint") and after != "joint":
            places.setdefault(word.meaning, at)
    return places


def reordered(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether two names stand in another order."""
    both = [name for name in one if name in other]
    return len(both) > 1 and sorted(both, key=one.__getitem__) != sorted(
        both, key=other.__getitem__
    )
