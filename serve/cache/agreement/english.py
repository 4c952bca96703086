"""English words: their meanings from `english.txt`, and the stems of all others.

Invariant: forms of one word have one stem far more often than two words do; where they do not, a
question is asked again, not answered wrongly.
"""

from __future__ import annotations

from functools import lru_cache

from serve.cache.agreement.tables import NEGATES, read_table

MEANINGS = read_table("english.txt")
AUXILIARIES = frozenset(
    (
        *("is", "are", "was", "were", "am", "do", "does", "did", "can", "could", "should", "shall"),
        *("will", "would", "has", "had", "may", "might", "must", "isn't", "aren't", "doesn't"),
        *("don't", "didn't", "can't", "wasn't", "won't"),
    )
)
"""What a question that is answered by yes or no begins with."""
REQUESTS = frozenset(
    (
        *("please", "kindly", "can you", "could you", "would you", "will you"),
        *("can you please", "could you please"),
    )
)
"""What a request begins with, beside the start of a sentence."""
PHRASES = {phrase: what for phrase, what in MEANINGS.items() if " " in phrase}
STARTS = frozenset(phrase.rsplit(" ", 1)[0] for phrase in PHRASES)
"""What stands before the last word of a phrase."""


@lru_cache(maxsize=8_192)
def meaning(word: str) -> str:
    """What `word`, in lower case, does in a question; its stem if the tables do not know it."""
    found = MEANINGS.get(word)
    if found is not None:
        return found
    if word.endswith("n't"):
        return NEGATES
    for ending in ("'s", "'re", "'m", "'ve", "'ll", "'d"):
        if word.endswith(ending):
            return meaning(word[: -len(ending)])
    return stem(word)


def stem(word: str) -> str:
    """`word` without the endings of number, tense and adverb; the same for forms of one word far
    more often than for two words."""
    if not word.isascii() or not word.isalpha() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 3), ("ed", 3), ("ly", 3)):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= least and not rest.endswith("e"):
            if any(letter in "aeiouy" for letter in rest):
                word = rest[:-1] if rest[-1:] == rest[-2:-1] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
