"""What a question negates.

Invariant: each negation counts once, with the word that it is before: "rent instead of buying" is
not "buy instead of renting".
"""

from __future__ import annotations

from collections.abc import Sequence

from serve.cache.agreement.tables import NEGATES
from serve.cache.agreement.words import Word

_PASSED = "&@?~"
"""What may stand between a negation and what it negates: can, I, may be left out."""


def negated(words: Sequence[Word]) -> tuple[str, ...]:
    """For each negation the meaning of the word that it negates, "" at the end of the question."""
    found = []
    for at, word in enumerate(words):
        if word.meaning == NEGATES:
            after = (
                w.meaning for w in words[at + 1 :] if w.meaning and w.meaning[0] not in _PASSED
            )
            found.append(next(after, ""))
    return tuple(sorted(found))
