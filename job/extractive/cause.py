"""Why, as the text itself says it: an effect and a cause around a connective. Pure.

Invariant: both are spans of the text; a cause is `stated` only where a connective of cause says so,
and `inferred` where one thing only came after another.
"""

from __future__ import annotations

from typing import NamedTuple

from job.extractive.grammar import Connective, Grammar
from job.extractive.spans import size, trim
from job.extractive.tone import tone
from job.records import Basis

_LONGEST = 400
"""Characters of a sentence that are looked at: the patterns take time by its square."""
_EDGES = ",;:.!?，；：。！？、()（）\"'“”"


class Split(NamedTuple):
    """The spans of effect and cause; the effect may be empty or hollow ("that was")."""

    effect: tuple[int, int]
    cause: tuple[int, int]
    basis: Basis


def split(low: str, start: int, end: int, rules: tuple[Grammar, ...]) -> Split | None:
    """The first effect and cause that a connective joins in the span, the surest first."""
    if end > start + _LONGEST:
        space = low.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        end = space if space > 0 else start + _LONGEST
    for rule in rules:
        for connective in rule.connectives:
            match = connective.pattern.match(low, start, end)
            if match is None:
                continue
            effect = trim(low, *match.span("e"), _EDGES)
            cause = trim(low, *match.span("c"), _EDGES)
            if size(low[cause[0] : cause[1]]) < 2:
                continue
            if connective.weak and tone(low, *effect, rules).failure < 2:
                continue
            if (connective.reported or connective.hearsay) and not _believed(
                connective, low, effect, cause, end, rules
            ):
                continue
            return Split(effect, cause, connective.basis)
    return None


def _believed(
    connective: Connective,
    low: str,
    effect: tuple[int, int],
    cause: tuple[int, int],
    end: int,
    rules: tuple[Grammar, ...],
) -> bool:
    """Whether what somebody said explains a trouble, rather than promises or adds something."""
    told = hollow(low[slice(*effect)], rules) or tone(low, *effect, rules).trouble >= 2
    if connective.reported:
        return told and tone(low, *cause, rules).failure >= 2
    failing = tone(low, cause[0], end, rules).failure >= 2
    return failing or (told and not any(rule.promise.match(low, *cause) for rule in rules))


def hollow(part: str, rules: tuple[Grammar, ...]) -> bool:
    """Whether an effect says nothing of its own, so that it means what was said before."""
    return any(rule.hollow.fullmatch(part) for rule in rules)
