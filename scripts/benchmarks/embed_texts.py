"""Texts to embed: pieces of the sample day of all lengths, each another one. Pure but for reading
the day."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

_DAY = Path(__file__).resolve().parents[2] / "docs" / "sample-day"
_FILES = ("app.log", "chat.jsonl", "feedback.csv")
_SHORTEST, _LONGEST = 100, 800
"""Characters of a piece: a log line or a conversation, 156 tokens on average as MiniLM reads them
(of a sixth, which has more than the 256 that it reads, the beginning)."""


def pieces(seed: int) -> Iterator[str]:
    """Without end; as many between 100 and 200 characters as between 400 and 800."""
    chance = random.Random(seed)
    day = "".join((_DAY / name).read_text(encoding="utf-8") for name in _FILES)
    number = 0
    while True:
        length = round(_SHORTEST * (_LONGEST / _SHORTEST) ** chance.random())
        start = chance.randrange(len(day) - length)
        number += 1
        # The number makes each piece another text: nobody may answer it from memory.
        yield f"{seed}.{number} {day[start : start + length]}"


def requests(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Cut into so many texts each."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]
