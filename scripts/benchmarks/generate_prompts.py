"""What generators are measured with.

Invariant: no prompt is asked twice in a run, and what differs comes first, unless a common
beginning is what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Prompt = Sequence[Mapping[str, str]]
"""The messages of one request."""

_TOPICS = (
    "how a bicycle stays upright",
    "the history of paper",
    "why the sea is salt",
    "how bread is made",
    "what a database index does",
    "how to plan a day in Lisbon",
    "why leaves turn red",
)
_RULES = "\n".join(
    f"Rule {number}: the teachers of this school {what}."
    for number, what in enumerate(("begin with an example", "say what is not known") * 5)
)
"""What prompts with a common beginning begin with: some 120 tokens."""


def prompts_of(count: int, turn: int, shared: bool = False) -> list[Prompt]:
    """Those of one turn. What differs is in the system's message, since a template puts one of its
    own before the user's; `shared`: in the last words of the user's instead."""
    made: list[Prompt] = []
    for number in range(count):
        once = f"Class {turn + 2} {count} {number}"
        topic = _TOPICS[number % len(_TOPICS)]
        system = "A school." if shared else f"{once}. You teach it, in whole sentences."
        asked = f"Explain {topic}." if not shared else f"{_RULES}\nExplain {topic} to {once}."
        made.append([{"role": "system", "content": system}, {"role": "user", "content": asked}])
    return made
