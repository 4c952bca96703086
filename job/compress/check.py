"""Whether a rule made short still says what it said. Pure.

Invariant: a short form passes only if it holds every number with its unit and bound, every quoted
term, name, outcome and severity of the rule, as many negations and exceptions, a word of each of
its parts, and no word that the rule has not. That is found by code; whether the whole says the same
is for the model to judge (see `asking.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from job.compress.content import lost_parts, moved_negations, moved_parts, new_words
from job.compress.deciding import COUNTED, MAY_GO, deciding
from job.compress.facts import GRADE, Facts, facts, plain
from job.text import language


def flaws(rule: str, short: str) -> list[str]:
    """What is wrong with `short` as another way to say `rule`, in words that a model can act on;
    nothing where the two are the same."""
    if rule == short:
        return []
    if not short:
        return ["it is empty"]
    had, has = facts(rule), facts(short)
    found = _changed(had.numbers, has.numbers) + _changed(had.grades, has.grades)
    found += _unsaid(rule, short, had, has)
    found += _deciding_changed(rule, short)
    if not found:
        found += [f"lost: {part}" for part in lost_parts(rule, short)]
        found += [f"new: {word}" for word in new_words(rule, short)]
        found += [f"not said to be not: {word}" for word in moved_negations(rule, short)]
        if _order_matters(rule) and moved_parts(rule, short):
            found.append("its parts are in another order")
    if {language(rule), language(short)} == {"zh", "en"} and not found:
        found.append("it is in another language")
    return found


def _order_matters(rule: str) -> bool:
    """Whether it says something of one part that it does not say of another."""
    grades = GRADE.findall(plain(rule))
    return len(grades) > 1 or any(name == "not" for name, _ in deciding(plain(rule)))


def _changed(had: Sequence[str], has: Sequence[str]) -> list[str]:
    """What a sequence lost or gained; its order where it is all there."""
    lost = [f"lost: {what}" for what in Counter(had) - Counter(has)]
    new = [f"new: {what}" for what in Counter(has) - Counter(had)]
    if not (lost or new) and list(had) != list(has):
        return [f"in another order: {', '.join(has)}"]
    return lost + new


def _unsaid(rule: str, short: str, had: Facts, has: Facts) -> list[str]:
    """Terms and names that only one of the two holds. Those that decide are looked at as such."""
    whole, left = _folded(rule), _folded(short)
    decide = {match[0] for _, match in deciding(plain(rule))}
    found = [f'lost: "{term}"' for term in had.terms if _folded(term) not in left]
    found += [f'new: "{term}"' for term in has.terms if _folded(term) not in whole]
    found += [
        f"lost: {name}"
        for name in had.names
        if _folded(name) not in left and _folded(name) not in decide
    ]
    return found + [f"new: {name}" for name in has.names if _folded(name) not in whole]


def _deciding_changed(rule: str, short: str) -> list[str]:
    had, has = deciding(plain(rule)), deciding(plain(short))
    before, after = Counter(name for name, _ in had), Counter(name for name, _ in has)
    found = []
    for name in dict.fromkeys([*before, *after]):
        wanted, left = before[name], after[name]
        if name not in COUNTED:
            wanted, left = min(wanted, 1), min(left, 1)
        if left < wanted and name not in MAY_GO:
            found.append(f"lost: {_surface(had, name)}")
        if left > wanted:
            found.append(f"new: {_surface(has, name)}")
    return found


def _surface(found: Sequence[tuple[str, re.Match[str]]], name: str) -> str:
    """How a text says what `name` stands for."""
    return next(match[0] for meant, match in found if meant == name)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
