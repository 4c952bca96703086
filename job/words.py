"""Asking a text for words, cheaply: what decides whether a costly search is worth it."""

from __future__ import annotations


def listed(*lines: str) -> tuple[str, ...]:
    """Words written as "one, two, two and a half", over as many lines as they need."""
    return tuple(word for line in lines for word in line.split(", "))


def lowered(text: str) -> str:
    """`text` in lower case, character for character (a few letters would become two)."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def holds_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether one of the words is in the text: the cheap question before a costly search."""
    for word in words:  # noqa: SIM110 - a generator would double the time of each line
        if word in text:
            return True
    return False
